package core

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// TestCancelEverything gives up messages of all kinds (from one buffer, of pieces, to a
// published buffer) at any moment, with memory that is used for something else as soon
// as it comes back. Each is told of once; what was told to have gone well was delivered,
// or written, and nothing else was; and all memory comes back.
func TestCancelEverything(t *testing.T) {
	canceled := 0
	for _, seed := range seeds(t, 100) {
		cfg := testConfig()
		cfg.Backlog, cfg.PeerBacklog = 1<<16, 1<<16
		w := newWorld(t, seed, cfg)
		rng := rand.New(rand.NewPCG(seed, 14))
		own, peer := w.open(0)
		p := w.publish(w.sides[1], peer, 40000, true)
		a := w.sides[0]
		var calls []int
		var errs []error
		sent, written := 0, 0
		post := func() {
			i, tag := len(calls), uint64(len(calls)+1)
			calls, errs = append(calls, 0), append(errs, nil)
			n := []int{1, 500, 1024, 1025, 5000, 30000}[rng.IntN(6)]
			b, _ := w.mem.Alloc(n)
			done := func(good *int, always bool) func(error) {
				return func(err error) {
					calls[i]++
					errs[i] = err
					if err == nil {
						*good++
					}
					if err == nil || always {
						w.mem.Free(b)
					}
				}
			}
			switch rng.IntN(3) {
			case 0:
				a.e.Send(own, b, 1, tag, done(&sent, false))
			case 1:
				k := rng.IntN(n)
				pieces := []qp.SGE{{Addr: mr.Addr(b), Length: uint32(k), LKey: 1}, {Addr: mr.Addr(b) + uint64(k), Length: uint32(n - k), LKey: 1}}
				a.e.Gather(own, pieces, tag, done(&sent, true))
			case 2:
				a.e.Put(own, p.token, b, 1, tag, done(&written, false))
			}
		}
		for range 300 {
			switch x := rng.IntN(10); {
			case x < 3:
				post()
			case x < 5 && len(calls) > 0:
				a.e.Cancel(own, uint64(1+rng.IntN(len(calls))))
			default:
				for range rng.IntN(12) {
					w.step()
				}
			}
		}
		w.settle()
		for i, n := range calls {
			if n != 1 {
				t.Fatalf("seed %d: message %d was told of %d times", seed, i, n)
			}
			if errs[i] != nil && !errors.Is(errs[i], ErrCanceled) {
				t.Fatalf("seed %d: message %d: %v", seed, i, errs[i])
			}
			if errs[i] != nil {
				canceled++
			}
		}
		if got := len(w.sides[1].got[own.id]); got != sent || p.writes != written {
			t.Fatalf("seed %d: %d messages arrived and %d writes, %d and %d went well", seed, got, p.writes, sent, written)
		}
		for _, s := range w.sides {
			if s.failed != nil {
				t.Fatalf("seed %d: %v", seed, s.failed)
			}
		}
		w.end()
	}
	if canceled < 100 {
		t.Errorf("%d messages were given up: the test shows nothing", canceled)
	}
}
