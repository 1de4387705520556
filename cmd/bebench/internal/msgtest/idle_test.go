package msgtest

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestIdle: each parcel that goroutines put there is taken once for each time that it was
// put there, and who finds none waits for one.
func TestIdle(t *testing.T) {
	const parcels, times = 8, 2000
	q := newIdle()
	back := make(chan *parcel, parcels)
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			for pc := range back {
				q.add(pc)
			}
		})
	}
	for range parcels {
		q.add(new(parcel))
	}
	out := map[*parcel]bool{}
	for range times {
		pc, err := q.take(t.Context())
		if err != nil || out[pc] {
			t.Fatalf("taken: %v, before it was put back: %v", err, out[pc])
		}
		out[pc] = true
		if len(out) == parcels {
			for pc := range out {
				delete(out, pc)
				back <- pc
			}
		}
	}
	close(back)
	others.Wait()
	for n := len(out); n < parcels; n++ {
		if _, err := q.take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if q.any() {
		t.Error("there is one too many")
	}
	q.giveBack(new(parcel))
	if !q.any() {
		t.Error("one that was given back is not there")
	}
	_, _ = q.take(t.Context())
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, err := q.take(ctx); err != why {
		t.Errorf("nothing there and nobody to come: %v", err)
	}
}
