package core

import (
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

// TestChainAgainstModel compares the chain with a plain list over random
// operations: runs add up, IDs name slots, and one signal a flush frees them.
func TestChainAgainstModel(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		depth := 1 + rng.IntN(40)
		c := newTestChain(t, depth, 7<<32)
		c.first = place(rng.Uint32())
		if seed%2 == 0 { // near a wrap
			c.first = -place(rng.IntN(100))
		}
		c.pending, c.next = c.first, c.first
		type posted struct {
			id       uint64
			signaled bool
			bytes    int
		}
		var flight []posted
		var pending []int
		for range 2000 {
			switch rng.IntN(3) {
			case 0:
				if c.ready() {
					n := rng.IntN(100)
					c.write(&outgoing{pieces: []qp.SGE{{Length: uint32(n)}}, length: n}, n)
					pending = append(pending, n)
				}
			case 1:
				if c.Pending() == 0 {
					continue
				}
				b := &c.scratch.sends
				every := b.every
				wrs, n := c.flush()
				b.every = 1 + rng.IntN(400)
				if len(wrs) != len(pending) {
					t.Fatalf("seed %d: %d requests, want %d", seed, len(wrs), len(pending))
				}
				unsignaled := 0
				for i, w := range wrs {
					unsignaled += pending[i]
					if w.Flags&qp.Signaled != 0 {
						n--
						unsignaled = 0
					}
					if unsignaled >= every {
						t.Fatalf("seed %d: %d bytes without a signal, want one every %d", seed, unsignaled, every)
					}
					flight = append(flight, posted{w.ID, w.Flags&qp.Signaled != 0, pending[i]})
					if w.ID>>32 != 7 {
						t.Fatalf("seed %d: ID %#x", seed, w.ID)
					}
				}
				if n != 0 {
					t.Fatalf("seed %d: the count of signaled requests is %d too high", seed, n)
				}
				if wrs[len(wrs)-1].Flags&qp.Signaled == 0 {
					t.Fatalf("seed %d: the last request is not signaled", seed)
				}
				c.flushed(len(wrs))
				pending = pending[:0]
			case 2:
				var signaled []int
				for i, p := range flight {
					if p.signaled {
						signaled = append(signaled, i)
					}
				}
				if len(signaled) == 0 {
					if c.completed(rng.Uint32()|1<<31) != 0 && c.InFlight() == 0 {
						t.Fatalf("seed %d: a stray ID frees slots", seed)
					}
					continue
				}
				i := signaled[0]
				n := c.completed(uint32(flight[i].id))
				if n != i+1 {
					t.Fatalf("seed %d: completion frees %d slots, want %d", seed, n, i+1)
				}
				for k := range n {
					if s := c.release(); s.bytes != flight[k].bytes {
						t.Fatalf("seed %d: slot has %d bytes, want %d", seed, s.bytes, flight[k].bytes)
					}
				}
				flight = flight[n:]
			}
			if c.InFlight() != len(flight) || c.Pending() != len(pending) || c.InFlight()+c.Pending()+c.Free() != depth {
				t.Fatalf("seed %d: runs %d %d %d of %d, want %d %d", seed, c.InFlight(), c.Pending(), c.Free(), depth, len(flight), len(pending))
			}
		}
	}
}

func TestChainSignalsEveryHalfDepth(t *testing.T) {
	c := newTestChain(t, 32, 0)
	for c.ready() {
		c.write(&outgoing{}, 0)
	}
	signaled := 0
	wrs, _ := c.flush()
	for i, w := range wrs {
		if w.Flags&qp.Signaled != 0 {
			signaled++
			if i != 15 && i != 31 {
				t.Errorf("request %d is signaled", i)
			}
		}
	}
	if signaled != 2 {
		t.Errorf("%d requests are signaled, want 2", signaled)
	}
}

func newTestChain(t *testing.T, depth int, idBase uint64) Chain {
	t.Helper()
	c := NewChain(NewScratch(depth, 1, 2, newFakeMemory(1<<20)), idBase)
	if err := c.scratch.enter(); err != nil {
		t.Fatal(err)
	}
	return c
}
