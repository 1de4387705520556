package be

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRing: producers that are faster than the worker, and one that closes the ring in
// the middle: every command that was taken runs once, those of a producer in its order,
// and the rest are refused.
func TestRing(t *testing.T) {
	const producers, each = 8, 20_000
	r := newRing()
	var taken [producers]atomic.Uint64
	var wg sync.WaitGroup
	for g := range producers {
		wg.Go(func() {
			for i := range uint64(each) {
				if !r.push(&command{kind: commandKind(g), tag: i}) {
					return
				}
				taken[g].Add(1)
			}
		})
	}
	var ran [producers]uint64
	run := func(limit int) {
		n := 0
		got := r.run(limit, func(c *command) {
			if c.tag != ran[c.kind] {
				t.Errorf("producer %d: command %d after %d", c.kind, c.tag, ran[c.kind])
			}
			ran[c.kind]++
			n++
		})
		if got != n {
			t.Errorf("%d commands ran, run says %d", n, got)
		}
	}
	for r.spilt.Load() == 0 { // until the ring has been full
		runtime.Gosched()
	}
	for total := uint64(0); total < producers*each/2; {
		run(16)
		runtime.Gosched()
		total = 0
		for _, n := range ran {
			total += n
		}
	}
	r.close()
	for !r.drained() {
		run(commandBatch)
	}
	wg.Wait()
	for !r.drained() { // a push that came too late may have counted itself for a moment
		run(commandBatch)
	}
	for g := range producers {
		if ran[g] != taken[g].Load() {
			t.Errorf("producer %d: %d commands were taken, %d ran", g, taken[g].Load(), ran[g])
		}
	}
	if r.push(&command{}) || !r.empty() {
		t.Error("the closed ring takes a command, or has one")
	}
}
