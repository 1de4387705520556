package core

import (
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/be/internal/wire"
)

// TestCap has engines with large messages on one Cap, and flushes only those that
// had a completion or were woken. The bound holds at every moment, all is sent,
// and each gets its share. In the control nobody is woken: then engines that never
// found room are stuck.
func TestCap(t *testing.T) {
	const engines, messages, limit = 8, 20, 192 << 10
	run := func(seed uint64, wakes bool) (sent []int, worst int) {
		rng := rand.New(rand.NewPCG(seed, 7))
		due := map[*Engine]bool{}
		loops := make([]*loop, engines)
		c := NewCap(limit, func(h Handler) {
			if wakes {
				due[h.(*nullSide).e] = true
			}
		})
		for i := range loops {
			loops[i] = newLoop(t, &source{size: 1 << 20})
			l := loops[i]
			l.e.cap, l.e.capped = c, true
			s := l.sources[0].s
			for range messages {
				l.e.Send(s, l.buf, key(s), 0, nil)
			}
			l.e.credits.granted = l.e.credits.consumed + 1000
			l.e.schedule(0) // RTS
			l.e.Flush(0)
			l.q.complete(l.e)
			for m := s.requested.head; m != nil; m = s.requested.head {
				l.e.onCTS(s, &wire.Header{Type: wire.CTS, Sequence: m.seq}, wire.Grant{})
			}
			due[l.e] = true
		}
		left := func() (lo, hi int) {
			for i, l := range loops {
				n := int(l.e.stats.WriteBytes)
				if i == 0 || n < lo {
					lo = n
				}
				hi = max(hi, n)
			}
			return lo, hi
		}
		for {
			progress := false
			for _, i := range rng.Perm(engines) {
				l := loops[i]
				if due[l.e] {
					delete(due, l.e)
					progress = true
					l.e.Flush(1)
				} else if len(l.q.done) > 0 && rng.IntN(2) == 0 {
					progress = true
					d := l.q.done[0]
					l.q.done = l.q.done[1:]
					l.e.Complete(1, &d)
					l.e.credits.granted = l.e.credits.consumed + 1000
					due[l.e] = true
				} else if len(l.q.done) > 0 {
					progress = true
				}
				if c.posted < 0 || c.posted > limit {
					t.Fatalf("seed %d: %d bytes are posted, the bound is %d", seed, c.posted, limit)
				}
			}
			if !progress {
				break
			}
			if lo, hi := left(); lo > 0 && hi < messages<<20 {
				worst = max(worst, hi-lo)
			}
		}
		for _, l := range loops {
			sent = append(sent, int(l.e.stats.WriteBytes))
		}
		return sent, worst
	}
	for seed := range uint64(20) {
		sent, worst := run(seed, true)
		for i, n := range sent {
			if n != messages<<20 {
				t.Errorf("seed %d: engine %d sent %d bytes, want %d", seed, i, n, messages<<20)
			}
		}
		if worst > 4*64<<10 {
			t.Errorf("seed %d: an engine was %d bytes ahead of another", seed, worst)
		}
	}
	sent, _ := run(1, false)
	stuck := 0
	for _, n := range sent {
		if n < messages<<20 {
			stuck++
		}
	}
	if stuck == 0 {
		t.Error("the control without wakes sent everything: the test shows nothing")
	}
}

// TestCapForgetsFailedEngines: an engine that fails or has nothing to send does not
// hold up those behind it.
func TestCapForgetsFailedEngines(t *testing.T) {
	var woken []Handler
	c := NewCap(100, func(h Handler) { woken = append(woken, h) })
	var e [3]*Engine
	for i := range e {
		e[i], _, _, _ = newNull(t)
		e[i].cap, e[i].capped = c, true
	}
	c.take(e[0], 100)
	c.wait(e[1], 60)
	c.wait(e[2], 60)
	c.wait(e[1], 60)
	if c.room(e[0], 1) || len(woken) != 0 {
		t.Fatal("there is room beyond the bound")
	}
	c.release(100)
	if len(woken) != 1 || woken[0] != e[1].h || c.room(e[2], 60) || !c.room(e[1], 60) {
		t.Fatalf("%d woken, want the first", len(woken))
	}
	e[1].Fail(1, ErrClosed)
	if len(woken) != 2 || woken[1] != e[2].h || !c.room(e[2], 60) {
		t.Fatalf("%d woken after the first failed, want the second", len(woken))
	}
	c.take(e[2], 60)
	if c.head != nil || c.tail != nil || c.posted != 60 {
		t.Errorf("%d bytes posted, waiting %v", c.posted, c.head)
	}
}
