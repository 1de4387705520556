package core

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/byteexpress/byteexpress/qp"
)

// TestSlotsAreShared has chains of one Scratch take and free slots at random, while memory
// comes and goes: no slot is two chains', each chain has its least whatever the others
// hold, and the last one to leave gives the memory back.
func TestSlotsAreShared(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 5))
		mem := newFakeMemory(1 << 20)
		depth := 1 + rng.IntN(40)
		s := NewScratch(depth, 1, 2, mem)
		var chains []*Chain
		used := map[*slot]bool{}
		take := func(c *Chain) {
			h := c.header()
			c.take(c.grow(0), nil, nil, 0)
			if used[c.newest] || c.newest.header != h {
				t.Fatalf("seed %d: a slot is used twice, or not the one whose header was", seed)
			}
			used[c.newest] = true
		}
		release := func(c *Chain) {
			c.flushed(c.Pending())
			for c.InFlight() > 0 {
				delete(used, c.release())
			}
		}
		for range 2000 {
			mem.fail = rng.IntN(4) > 0
			switch k := rng.IntN(20); {
			case k == 0 || len(chains) == 0:
				if err := s.enter(); err == nil {
					c := NewChain(s, 0)
					chains = append(chains, &c)
				} else if !mem.fail || !errors.Is(err, errFull) {
					t.Fatalf("seed %d: %v", seed, err)
				}
			case k == 1:
				i := rng.IntN(len(chains))
				release(chains[i])
				s.leave()
				chains = append(chains[:i], chains[i+1:]...)
			case k < 8:
				release(chains[rng.IntN(len(chains))])
			case k < 9:
				c := chains[rng.IntN(len(chains))]
				var taken []*slot
				for n := rng.IntN(4); n > 0 && c.ready(); n-- {
					take(c)
					taken = append(taken, c.newest)
				}
				for _, last := range slices.Backward(taken) {
					if c.abandon() != last {
						t.Fatalf("seed %d: another slot was abandoned than the newest", seed)
					}
					delete(used, last)
				}
				c.flushed(0)
			default:
				c := chains[rng.IntN(len(chains))]
				for n := rng.IntN(depth) + 1; n > 0 && c.ready(); n-- {
					take(c)
				}
				if c.Free() > 0 && !c.ready() && !mem.fail {
					t.Fatalf("seed %d: no slot though there is memory", seed)
				}
				c.flushed(c.Pending())
			}
			for _, c := range chains {
				if c.InFlight() < min(depth, leastSlots) && !c.ready() {
					t.Fatalf("seed %d: a chain does not get its least number of slots", seed)
				}
			}
			free := 0
			for p := s.free; p != nil; p = p.next {
				if free++; used[p] {
					t.Fatalf("seed %d: a slot is free and used", seed)
				}
			}
			if free+len(used) != len(s.slabs)*moreSlots {
				t.Fatalf("seed %d: %d free and %d used slots of %d", seed, free, len(used), len(s.slabs)*moreSlots)
			}
		}
		for _, c := range chains {
			release(c)
			s.leave()
		}
		if len(mem.live) != 0 {
			t.Fatalf("seed %d: %d buffers are allocated at the end", seed, len(mem.live))
		}
	}
}

// TestSlotIsALine: a slot is in one line of the cache.
func TestSlotIsALine(t *testing.T) {
	if n := unsafe.Sizeof(slot{}); n != 64 {
		t.Errorf("a slot has %d bytes, want 64", n)
	}
}

// TestStartWithoutMemory: an engine for whose slots there is no memory fails, and gives
// everything back.
func TestStartWithoutMemory(t *testing.T) {
	mem, cfg := newFakeMemory(arenaBytes), testConfig()
	q, _ := newFakePair(t, mem, qp.Caps{SendWR: cfg.SendDepth, RecvWR: cfg.RecvDepth, SendSGE: 2, RecvSGE: 2})
	s := &side{t: t, qp: q, mem: mem, quota: &fakeQuota{}}
	e, err := NewEngine(cfg, q, mem, s.quota, s)
	if err == nil {
		err = e.Prepare()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.e, mem.fail = e, true
	e.Start(0)
	if e.Up() || !errors.Is(e.Err(), errFull) {
		t.Errorf("it is up: %v; its error is %v, want %v", e.Up(), e.Err(), errFull)
	}
	e.Tick(cfg.DrainTimeout)
	if !q.closed || len(mem.live) != 0 {
		t.Errorf("the queue pair is closed: %v; %d buffers are allocated", q.closed, len(mem.live))
	}
}
