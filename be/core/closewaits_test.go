package core

import (
	"errors"
	"testing"
	"time"
)

// TestCloseWhileOthersHaveTheirTurn: a socket is closed whose large messages have memory
// and wait until others have arrived. They are given up before its CLOSE, not asked for
// after it: then the peer knows the socket no more. The engine goes on.
func TestCloseWhileOthersHaveTheirTurn(t *testing.T) {
	for _, get := range []bool{false, true} {
		for _, seed := range seeds(t, 100) {
			cfg := testConfig()
			cfg.Window, cfg.WindowTarget = cfg.Fragment, time.Millisecond
			all := NewInbound(8000, 0, 1, nil)
			cfg.Arrivals, cfg.PeerExpect = NewArrivals(all, func(Handler) {}), all.Most()
			w := newWorld(t, seed, cfg)
			to := w.sides[1]
			to.quota.limit = 1 << 20
			first, _ := w.open(0)
			own, peer := w.open(0)
			w.sides[0].e.SetGet(own, get)
			var f, g flow
			for range 4 {
				w.send(w.sides[0], first, &f, 2100, 0)
			}
			for range 3 {
				w.send(w.sides[0], own, &g, 2100, 0)
			}
			waits := func() bool {
				in := peer.inHead
				for in != nil && in.line != &to.e.waiting {
					in = in.next
				}
				return in != nil
			}
			for !waits() {
				if !w.step() {
					t.Fatal("no message waits: the test shows nothing")
				}
			}
			for range w.rng.IntN(40) {
				w.step()
			}
			to.e.CloseSocket(w.now, peer)
			w.settle()
			if err := errors.Join(w.sides[0].failed, to.failed); err != nil {
				t.Fatalf("get %v, seed %d: %v", get, seed, err)
			}
			if len(to.got[first.id]) != 4 || g.calls != 3 {
				t.Errorf("get %v, seed %d: %d messages of the other socket came, %d of this one ended", get, seed, len(to.got[first.id]), g.calls)
			}
			if errors.Join(g.ended...) == nil {
				t.Errorf("get %v, seed %d: a message that nobody took was sent well", get, seed)
			}
			if all.used.Load() != 0 || all.peers.Load() != 0 || to.quota.used != 0 {
				t.Errorf("get %v, seed %d: %d bytes of %d peers are expected, %d of the quota used", get, seed, all.used.Load(), all.peers.Load(), to.quota.used)
			}
			w.end()
		}
	}
}
