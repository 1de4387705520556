package core

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestUnorderedOvertakes: on an unordered socket a small message is delivered while
// a large one before it waits for memory, and a short large one does not wait for
// a long one of its sender. In the control, on an ordered socket, both wait.
func TestUnorderedOvertakes(t *testing.T) {
	for _, tt := range []struct {
		way       func(*Engine, uint32, string, any) (*Socket, error)
		overtakes bool
	}{{(*Engine).OpenUnordered, true}, {(*Engine).Open, false}} {
		w := newWorld(t, 1, testConfig())
		own, peer := w.openBy(0, tt.way)
		if peer.Unordered() != tt.overtakes || own.Unordered() != tt.overtakes {
			t.Errorf("unordered: %v and %v", own.Unordered(), peer.Unordered())
		}
		to := w.sides[1]
		to.quota.used = to.quota.limit // all memory is taken
		var f flow
		w.send(w.sides[0], own, &f, 100_000, 0)
		w.send(w.sides[0], own, &f, 100, 0)
		for range 10_000 {
			w.step()
		}
		if got := len(to.got[own.id]) == 1; got != tt.overtakes {
			t.Errorf("unordered %v: the small message came first: %v", tt.overtakes, got)
		}
		to.quota.used = 0
		w.settle()
		to.got[own.id] = nil
		to.quota.limit = 1 << 20
		w.send(w.sides[0], own, &f, 600_000, 0)
		w.send(w.sides[0], own, &f, 10_000, 0)
		w.settle()
		if got := len(to.got[own.id]) == 2 && len(to.got[own.id][0]) == 10_000; got != tt.overtakes {
			t.Errorf("unordered %v: the short message came first: %v", tt.overtakes, got)
		}
		w.end()
	}
}

// TestUnorderedWithOldPeer: a peer that does not know unordered sockets is never
// asked for one.
func TestUnorderedWithOldPeer(t *testing.T) {
	cfg := testConfig()
	cfg.Unordered = false
	w := newWorld(t, 1, cfg)
	if _, err := w.sides[0].e.OpenUnordered(1, "x", nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	if w.sides[0].e.Sockets() != 0 {
		t.Error("a socket is left")
	}
	w.open(0)
	w.end()
}

// TestHoldTimeout: a message for which there is never memory is rejected after the
// time given, and what is behind it goes on. In the control without a time it
// waits.
func TestHoldTimeout(t *testing.T) {
	for _, timeout := range []int{0, 50_000_000} {
		cfg := testConfig()
		cfg.HoldTimeout = 50_000_000
		if timeout == 0 {
			cfg.HoldTimeout = 0
		}
		w := newWorld(t, 1, cfg)
		own, _ := w.open(0)
		to := w.sides[1]
		to.quota.used = to.quota.limit
		var f flow
		w.send(w.sides[0], own, &f, 100_000, 0)
		w.send(w.sides[0], own, &f, 100, 0)
		for range 10_000 {
			w.step()
		}
		rejected := errors.Is(f.ended[0], ErrRejected)
		if rejected != (timeout > 0) || len(to.got[own.id]) == 1 != rejected {
			t.Errorf("timeout %d: ended with %v, %d messages arrived", timeout, f.ended[0], len(to.got[own.id]))
		}
		to.quota.used = 0
		w.settle()
		w.end()
	}
}

// TestLackOfMemoryStopsOneSocket: a message that never gets memory does not stop
// other sockets, until many have passed it; then all wait for it, for a while.
func TestLackOfMemoryStopsOneSocket(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	stuck, _ := w.open(0)
	other, _ := w.open(0)
	to := w.sides[1]
	to.quota.used, to.quota.limit = 50_000, 100_000 // the application keeps some
	var big, f flow
	w.send(w.sides[0], stuck, &big, 90_000, 0)
	const n = 7*maxPassed + 10
	var since time.Duration
	var stops []int // after how many messages all waited
	for got := 0; got < n; {
		if f.calls == len(f.sent) && len(f.sent) < n {
			w.send(w.sides[0], other, &f, 2000, 0)
		}
		w.step()
		if k := len(to.got[other.id]); k > got {
			if w.now-since > maxStop/2 {
				stops = append(stops, got)
			}
			got, since = k, w.now
		}
		if w.now-since > 2*maxStop {
			t.Fatalf("after %d messages no more pass", got)
		}
	}
	if want := []int{maxPassed, 3 * maxPassed, 7 * maxPassed}; !slices.Equal(stops, want) {
		t.Errorf("all waited after %d messages, want %d", stops, want)
	}
	to.quota.used -= 50_000
	w.settle()
	if len(to.got[other.id]) != n || len(to.got[stuck.id]) != 1 {
		t.Errorf("%d and %d messages arrived", len(to.got[other.id]), len(to.got[stuck.id]))
	}
	w.end()
}
