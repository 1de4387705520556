package core

import "testing"

// TestToldOfAll: whatever an application may wait for sets Told: a message that came, small
// or large, one that was sent or given up, a buffer that was written to, a socket that opened
// or ended. In the control, what it does not hear of does not.
func TestToldOfAll(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, peer := w.open(0)
	p := w.publish(w.sides[1], peer, 5000, true)
	var f flow
	var closing *Socket
	told := func() (both [2]bool) {
		w.settle()
		for i, s := range w.sides {
			both[i] = s.e.chain.scratch.Told
			s.e.chain.scratch.Told = false
		}
		return both
	}
	told()
	for _, tt := range []struct {
		name string
		do   func()
		want [2]bool // the sender, the receiver
	}{
		{"a small message", func() { w.send(w.sides[0], own, &f, 10, 0) }, [2]bool{true, true}},
		{"a large one", func() { w.send(w.sides[0], own, &f, 5000, 0) }, [2]bool{true, true}},
		{"one that is given up", func() {
			w.send(w.sides[0], own, &f, 5000, 7)
			w.sides[0].e.Cancel(own, 7)
		}, [2]bool{true, false}},
		{"a write to a known buffer", func() { w.put(w.sides[0], own, &f, p.token, 5000, 1, 0) }, [2]bool{true, true}},
		{"control: a credit", func() { w.sides[0].e.credits.owed = true }, [2]bool{}},
		{"a socket", func() { closing, _ = w.sides[0].e.Open(1, "x", nil) }, [2]bool{true, true}},
		{"its end", func() { w.sides[0].e.CloseSocket(w.now, closing) }, [2]bool{true, true}},
	} {
		tt.do()
		if got := told(); got != tt.want {
			t.Errorf("%s: the sides were told: %v, want %v", tt.name, got, tt.want)
		}
	}
	w.end()
}
