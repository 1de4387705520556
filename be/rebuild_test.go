package be

import (
	"testing"
	"time"
)

func TestRebuildPauses(t *testing.T) {
	var r rebuild
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000} {
		want *= time.Millisecond
		low, high := r, r
		if got := low.failed(0, 0); got != want/2 {
			t.Errorf("failure %d: at least %v, want %v", i+1, got, want/2)
		}
		if got := high.failed(0, 0.999999); got > want || got < want*9/10 {
			t.Errorf("failure %d: at most %v, want %v", i+1, got, want)
		}
		r.failed(0, 0)
	}
	for range 100 {
		r.failed(0, 0)
	}
	if got := r.failed(0, 0); got != lastRebuild/2 {
		t.Errorf("after many failures: %v", got)
	}
	if got := r.failed(soundAge, 0); got != firstRebuild/2 {
		t.Errorf("after an engine that lived: %v", got)
	}
}
