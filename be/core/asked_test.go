package core

import "testing"

// TestGivenUpBeforeItWasAskedFor: a large message that waits for a credit to be asked for
// is given up, and a small one is behind it, while other sockets wait too. All that is
// left is sent, and in the control, where nothing is given up, the large one too.
func TestGivenUpBeforeItWasAskedFor(t *testing.T) {
	for _, giveUp := range []bool{false, true} {
		w := newWorld(t, 1, testConfig())
		a := w.sides[0]
		var socks [4]*Socket
		var flows [4]flow
		for i := range socks {
			socks[i], _ = w.open(0)
		}
		w.settle()
		held := a.e.credits.consumed
		a.e.credits.consumed = a.e.credits.granted
		w.send(a, socks[0], &flows[0], 50000, 1)
		for i := range socks {
			for range 3 {
				w.send(a, socks[i], &flows[i], 10, 0)
			}
		}
		if giveUp {
			a.e.Cancel(socks[0], 1)
		}
		if n := int(a.e.sched.asks.n); (n == 0) != giveUp || a.e.sched.beginners() != len(socks) {
			t.Errorf("%d sockets are to ask, %d to begin", n, a.e.sched.beginners())
		}
		a.e.credits.consumed = held
		a.e.Flush(w.now)
		w.settle()
		for i := range flows {
			for m, err := range flows[i].ended {
				if bad := giveUp && i == 0 && m == 0; (err != nil) != bad {
					t.Errorf("given up %v: socket %d: message %d: %v", giveUp, i, m, err)
				}
			}
		}
		w.end()
	}
}
