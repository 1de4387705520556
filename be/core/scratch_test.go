package core

import "testing"

// TestTold: whoever drives the engines learns when an application was handed a message, at
// once or after others, or told what became of one; and not from what goes between engines.
func TestTold(t *testing.T) {
	for _, size := range []int{100, 100_000} {
		w := newWorld(t, 1, testConfig())
		own, _ := w.open(0)
		told := [2]*bool{&w.sides[0].e.chain.scratch.Told, &w.sides[1].e.chain.scratch.Told}
		*told[0], *told[1] = false, false
		var f flow
		w.send(w.sides[0], own, &f, size, 0)
		for n := 0; f.calls == 0 || len(w.sides[1].got[own.id]) == 0; n++ {
			if w.step(); n == 10_000 {
				t.Fatalf("%d bytes: the message did not arrive", size)
			}
			if came := len(w.sides[1].got[own.id]) > 0; *told[1] != came {
				t.Errorf("%d bytes: receiver told: %v, message there: %v", size, *told[1], came)
			}
			if *told[0] != (f.calls > 0) {
				t.Errorf("%d bytes: sender told: %v, of %d messages", size, *told[0], f.calls)
			}
		}
		w.end()
	}
}
