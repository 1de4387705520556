package core

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
)

// TestRandomEnds: engines end at any moment of random schedules, by a broken queue pair, a
// cause, a device that does not answer, or a goodbye, often with packed messages that lack
// memory; sockets are closed, opened and sent on meanwhile. Each message and socket ends once;
// what is delivered was sent, once, and on a socket with order nothing that was sent well is
// left out before it; what waited packed is delivered or the error says that it was dropped;
// memory, quotas and lines are empty at the end.
func TestRandomEnds(t *testing.T) {
	packed := 0
	for _, seed := range seeds(t, 150) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { packed += randomEnd(t, seed) })
		if t.Failed() {
			return
		}
	}
	if packed == 0 && len(seeds(t, 150)) > 1 {
		t.Error("no engine ended with packed messages: the test shows nothing")
	}
}

// randomEnd gives the number of packed messages that waited when the engine ended.
func randomEnd(t *testing.T, seed uint64) (packed int) {
	cfg := testConfig()
	r := rand.New(rand.NewPCG(seed, 77))
	cfg.Linger = time.Duration(r.IntN(2)) * 1e8
	cfg.DrainTimeout = 1 + time.Duration(r.IntN(2000))
	cfg.SocketQuota = []int{0, 1, 3000}[r.IntN(3)]
	cfg.HoldTimeout = time.Duration(r.IntN(2)) * 5e6
	w := newRandomWorld(t, r, seed, &cfg, 12)
	for _, s := range w.sides {
		s.quota.limit = []int{1, 10000, 1 << 20}[r.IntN(3)]
	}
	ends := w.openEnds(r, 1+r.IntN(6))
	starving := false
	for range 100 + r.IntN(400) {
		switch x := r.IntN(20); {
		case x < 8:
			e := ends[r.IntN(len(ends))]
			if len(e.f.sent) < 40 {
				w.send(e.s, e.k, &e.f, []int{3, 1, 100, 200, 100, 50, 1024, 2048, 5000, 20000}[r.IntN(10)], uint64(1+len(e.f.sent)))
			}
		case x == 8 && r.IntN(10) == 0:
			e := ends[r.IntN(len(ends))]
			e.s.e.Cancel(e.k, 1+uint64(r.IntN(10)))
		case x == 9 && r.IntN(20) == 0:
			e := ends[r.IntN(len(ends))]
			e.s.e.CloseSocket(w.now, e.k)
		case x == 10:
			starving = r.IntN(3) > 0
		default:
			for range r.IntN(10) {
				w.mem.fail = starving
				w.step()
				w.mem.fail = false
			}
		}
	}
	b := w.sides[r.IntN(2)]
	want := map[*Socket]int{}
	cause := errors.New("lost")
	w.mem.fail = r.IntN(3) > 0
	how := r.IntN(4)
	for _, e := range ends {
		if e.s == b {
			for in := e.k.inHead; in != nil; in = in.next {
				if in.state == recvPacked {
					want[e.k]++
				} else if in.state < recvReady && !e.k.unordered {
					break
				}
			}
		}
	}
	before := map[*Socket]int{}
	for _, e := range ends {
		before[e.k] = len(e.s.got[e.k.id])
	}
	switch how {
	case 0:
		b.qp.fail(sent{}, cq.RetryExceededError)
		b.e.failedRequest(w.now, &cq.Completion{Status: cq.RetryExceededError})
	case 1:
		b.e.Fail(w.now, cause)
	case 2:
		b.e.qp = &deadQP{b.qp}
		b.e.Fail(w.now, cause)
	case 3:
		b.e.Goodbye(w.now, w.now+5000)
	}
	packed = b.e.packed.n
	closed := map[*Socket]bool{}
	for range r.IntN(300) {
		fail := w.mem.fail
		switch r.IntN(30) {
		case 0:
			fail = r.IntN(3) > 0
		case 1:
			e := ends[r.IntN(len(ends))]
			if r.IntN(10) == 0 {
				e.s.e.CloseSocket(w.now, e.k)
				closed[e.k] = true
			}
		case 2:
			e := ends[r.IntN(len(ends))]
			if len(e.f.sent) < 60 {
				w.send(e.s, e.k, &e.f, []int{3, 100, 5000}[r.IntN(3)], 0)
			}
		case 3:
			e := ends[r.IntN(len(ends))]
			e.s.e.Room(w.now, e.k)
		case 4:
			e := ends[r.IntN(len(ends))]
			e.s.e.Cancel(e.k, 1+uint64(r.IntN(10)))
		case 5:
			if r.IntN(30) == 0 {
				w.sides[r.IntN(2)].e.Goodbye(w.now, w.now+5000)
				for _, e := range ends {
					closed[e.k] = true
				}
			}
		case 6:
			e := ends[r.IntN(len(ends))]
			e.s.e.Open(1, "x", nil)
		}
		w.mem.fail = fail
		w.step()
		w.mem.fail = fail
	}
	w.mem.fail = false
	n := 0
	for ; w.step() && n < 20000; n++ {
	}
	w.sides[0].e.Fail(w.now, cq.RetryExceededError)
	for n := 0; w.step() && n < 20000; n++ {
	}
	w.sides[1].e.Fail(w.now, cq.RetryExceededError)
	w.settle()
	if how < 3 && cfg.Linger > 0 {
		for _, e := range ends {
			if got := len(e.s.got[e.k.id]) - before[e.k]; got < want[e.k] && e.s == b && !closed[e.k] && !errors.Is(e.s.ended[e.k], ErrDropped) && !errors.Is(e.s.ended[e.k], ErrClosed) {
				t.Errorf("how %d: %d arrived, %d were packed; %v", how, got, want[e.k], e.s.ended[e.k])
			}
		}
	}
	for i, e := range ends {
		if e.s.ended[e.k] == nil {
			t.Errorf("end %d never ended", i)
		}
		got := e.peer.s.got[e.k.id]
		for m, err := range e.f.ended {
			if err == errPending {
				t.Fatalf("end %d: message %d of %d never ended", i, m, len(e.f.ended))
			}
		}
		next, gaps := 0, false
		used := make([]bool, len(e.f.sent))
		for _, g := range got {
			if e.k.unordered {
				next = 0
			}
			for next < len(e.f.sent) && (used[next] || !bytes.Equal(g, e.f.sent[next])) {
				if e.f.ended[next] == nil {
					gaps = true
				}
				next++
			}
			if next == len(e.f.sent) {
				t.Fatalf("end %d: a message came that was not sent, or twice", i)
			}
			used[next] = true
			next++
		}
		if gaps && !e.k.unordered {
			t.Errorf("end %d: a message that was sent well is left out", i)
		}
	}
	w.end()
	cfg.Arrivals.none(t)
	for _, s := range w.sides {
		if s.e.held.n+s.e.parked.n+s.e.packed.n+s.e.waiting.n != 0 || s.e.sending != 0 {
			t.Errorf("%s: held %d parked %d packed %d waiting %d sending %d", s.name, s.e.held.n, s.e.parked.n, s.e.packed.n, s.e.waiting.n, s.e.sending)
		}
		for _, e := range ends {
			if e.k.held+e.k.parked+e.k.packed != 0 || e.k.inUse.Load() != 0 || e.k.sending != 0 {
				t.Errorf("socket %d: held %d, parked %d, packed %d, %d bytes in use, sending %d", e.k.id, e.k.held, e.k.parked, e.k.packed, e.k.inUse.Load(), e.k.sending)
			}
		}
	}
	return packed
}
