package core

import (
	"fmt"
	"testing"
	"time"
)

// TestFaultMatrixShapes runs the matrix with few and many replicas and calls, and with
// the fault in two of three replicas at once.
func TestFaultMatrixShapes(t *testing.T) {
	for _, f := range faultMatrix {
		for _, shape := range []struct {
			replicas int
			rate     float64
		}{{2, 50}, {2, 1500}, {7, 1500}} {
			t.Run(fmt.Sprintf("%s/%d replicas, %v calls a second", f.desc, shape.replicas, shape.rate), func(t *testing.T) {
				for _, seed := range seeds(t)[:1] {
					for _, what := range strike(t, seed, shape.replicas, shape.rate, quick(), f) {
						t.Errorf("SEED=%d: %s", seed, what)
					}
				}
			})
		}
		t.Run(f.desc+"/two of three", func(t *testing.T) {
			two := f
			two.fallback, two.returns = NoReason, false // counted at one of them only
			two.strike = func(s *server) {
				next := s.w.servers[int(s.replica.ID)%len(s.w.servers)]
				f.strike(s)
				f.strike(next)
				if f.heal != nil {
					s.w.after(4*time.Second, func() { f.heal(next) })
				}
			}
			for _, seed := range seeds(t)[:min(10, len(seeds(t)))] {
				for _, what := range strike(t, seed, 3, 300, quick(), two) {
					t.Errorf("SEED=%d: %s", seed, what)
				}
			}
		})
	}
}

// TestHungBeyondEjectShare: two of three replicas hang, and EjectShare keeps one of them.
// Calls leave it as they leave the ejected one, and do not wait for the budget: that took
// another second in one run of a hundred, among them these.
func TestHungBeyondEjectShare(t *testing.T) {
	hang := faultMatrix[3]
	two := hang
	two.strike = func(s *server) {
		next := s.w.servers[int(s.replica.ID)%len(s.w.servers)]
		hang.strike(s)
		hang.strike(next)
		s.w.after(4*time.Second, func() { hang.heal(next) })
	}
	for seed := range uint64(100) {
		for _, what := range strike(t, 682034+seed, 3, 300, quick(), two) {
			t.Errorf("SEED=%d: %s", 682034+seed, what)
		}
	}
}
