package core

import (
	"errors"
	"testing"
	"time"
)

// TestArrivals: of many large messages that a peer wants to send, as many are asked for
// as the bound lets in, each counted with a quarter of it at most, and all arrive. The
// sender's window, of a fragment, does not hold up what the receiver counts on. In the
// control, without a bound, all are asked for at once.
func TestArrivals(t *testing.T) {
	const socks, size = 8, 100_000
	for _, get := range []bool{false, true} {
		for _, limit := range []int{64_000, 0} {
			cfg := testConfig()
			cfg.Window, cfg.WindowTarget = cfg.Fragment, time.Millisecond
			var all *Inbound
			if limit > 0 {
				all = NewInbound(limit, 0, 1, nil)
				cfg.Arrivals, cfg.PeerExpect = NewArrivals(all, func(Handler) {}), all.Most()
			}
			w := newWorld(t, 1, cfg)
			w.sides[1].quota.limit = 1 << 20
			var flows [socks]flow
			var opened [socks]*Socket
			for i := range flows {
				opened[i], _ = w.open(0)
				w.sides[0].e.SetGet(opened[i], get)
			}
			for i := range flows {
				w.send(w.sides[0], opened[i], &flows[i], size, 0)
			}
			asked, posted := 0, 0
			for w.step() {
				n := 0
				for _, k := range opened {
					if in := w.sides[1].e.socket(k.id).inHead; in != nil && (in.state == recvWriting || in.state == recvReading) && (limit == 0 || in.line == &cfg.Arrivals.invited) {
						n++
					}
				}
				asked = max(asked, n)
				posted = max(posted, w.sides[0].e.window.Posted(), w.sides[1].e.window.Posted())
				if limit > 0 && all.used.Load() > int64(limit) {
					t.Fatalf("%d bytes are expected, the bound is %d", all.used.Load(), limit)
				}
			}
			queued := w.sides[1].e.Stats().Queued
			if limit > 0 && (asked != 4 || queued != socks-4 || posted < all.Most()/2) {
				t.Errorf("get %v: %d were asked for at once, %d waited, %d bytes posted", get, asked, queued, posted)
			}
			if limit == 0 && (asked != socks || queued != 0 || posted > cfg.Fragment) {
				t.Errorf("get %v, control: %d were asked for at once, %d waited, %d bytes posted", get, asked, queued, posted)
			}
			for i := range flows {
				if flows[i].ended[0] != nil {
					t.Errorf("get %v: message %d: %v", get, i, flows[i].ended[0])
				}
			}
			w.end()
		}
	}
}

// arrivalsOf makes a worker's, what has a peer ask for a message of n bytes, and a count of
// who was woken.
func arrivalsOf(t *testing.T, all *Inbound) (a *Arrivals, message func(n int) *incoming, woken *int) {
	woken = new(int)
	a = NewArrivals(all, func(Handler) { *woken++ })
	return a, peerOf(t, a), woken
}

// peerOf makes one more peer, which asks for messages of n bytes.
func peerOf(t *testing.T, a *Arrivals) (message func(n int) *incoming) {
	e, _, k, _ := newNull(t)
	return func(n int) *incoming {
		in := e.newIncoming()
		in.sock, in.length, in.state = k, n, recvWriting
		a.expect(0, in)
		return in
	}
}

// TestArrivalsOfTheDead: a message that was asked for and does not come keeps others
// waiting for a while only.
func TestArrivalsOfTheDead(t *testing.T) {
	all := NewInbound(400, 0, 1, nil)
	a, message, woken := arrivalsOf(t, all)
	for range 4 {
		message(100)
	}
	late := message(100)
	patience := all.patience()
	if rest := patience - minPatience; rest != 4*10*time.Microsecond { // the bound once, in 10 us
		t.Errorf("they have %v beyond %v", rest, minPatience)
	}
	a.Admit(patience - 1)
	if late.line == &a.invited || *woken != 0 {
		t.Fatal("a message did not wait for those before it")
	}
	a.Admit(patience)
	if late.line != &a.invited || *woken == 0 || all.used.Load() != 100 {
		t.Errorf("after %v it still waits; %d bytes are expected", patience, all.used.Load())
	}
}

// TestArrivalsOfWorkers: one worker may use the whole bound, another still has the share
// of its peers, room goes to the worker that makes it first, and then the others are told.
func TestArrivalsOfWorkers(t *testing.T) {
	poked := 0
	all := NewInbound(400, 0, 1, func() { poked++ })
	a, first, woken := arrivalsOf(t, all)
	b, second, _ := arrivalsOf(t, all)
	var of [4]*incoming
	for i := range of {
		of[i] = first(100)
	}
	if more := first(100); a.own != 400 || more.line == &a.invited {
		t.Fatalf("one worker alone has %d bytes of 400", a.own)
	}
	for range 3 {
		second(100)
	}
	if b.own != 200 || b.turns.n == 0 {
		t.Errorf("the other has %d bytes, its share is 200; more wait: %v", b.own, b.turns.n > 0)
	}
	for _, in := range of[:3] {
		a.forget(in)
	}
	if poked > 0 || *woken == 0 {
		t.Errorf("of room that a worker has messages for, others were told %d times, it was %d times", poked, *woken)
	}
	if a.Admit(0); a.own != 200 || a.turns.n > 0 {
		t.Errorf("it has %d bytes, its share is 200", a.own)
	}
	if a.forget(of[3]); poked == 0 {
		t.Error("the other was not told of room")
	}
	if b.Admit(0); b.turns.n > 0 {
		t.Error("it did not use it")
	}
}

// TestArrivalsOfFewPeers: a worker whose peers' share is less than a byte, and in use, has
// a message to receive all the same.
func TestArrivalsOfFewPeers(t *testing.T) {
	all := NewInbound(4, 0, 1, func() {}) // a message counts with a byte
	a, message, _ := arrivalsOf(t, all)
	for range 4 {
		message(100)
		message = peerOf(t, a)
	}
	if more := message(100); a.own != 4 || more.line == &a.invited {
		t.Fatalf("one worker alone has %d bytes of 4", a.own)
	}
	b, message, _ := arrivalsOf(t, all)
	if in := message(100); in.line != &b.invited {
		t.Error("a worker with nothing to receive waits for others")
	}
}

// TestArrivalsOfFailedEngine: what a failed engine's peer was to send counts no more.
func TestArrivalsOfFailedEngine(t *testing.T) {
	all := NewInbound(16_000, 0, 1, nil)
	cfg := testConfig()
	cfg.Arrivals = NewArrivals(all, func(Handler) {})
	w := newWorld(t, 1, cfg)
	k, _ := w.open(0)
	var f flow
	for range 6 {
		w.send(w.sides[0], k, &f, 20_000, 0)
	}
	for all.used.Load() == 0 {
		w.step()
	}
	w.sides[1].e.Fail(w.now, errors.New("pulled"))
	if all.used.Load() != 0 || cfg.Arrivals.turns.n > 0 {
		t.Errorf("%d bytes are expected from a failed engine's peer, a message waits: %v", all.used.Load(), cfg.Arrivals.turns.n > 0)
	}
	w.settle()
	w.sides[0].e.Fail(w.now, errors.New("pulled"))
	w.settle()
	w.end()
}

// TestArrivalsOfManyPeers: the bound grows with the peers that want to send, not with
// the messages of one.
func TestArrivalsOfManyPeers(t *testing.T) {
	all := NewInbound(400, 100, 1, nil)
	a, message, _ := arrivalsOf(t, all)
	for range 8 {
		message(100)
	}
	if a.own != 400 {
		t.Fatalf("of one peer %d bytes are expected, want 400", a.own)
	}
	for range 7 {
		peerOf(t, a)(100)
	}
	if a.Admit(0); a.own != 800 {
		t.Errorf("of eight peers %d bytes are expected, want 800", a.own)
	}
	for a.turns.n > 0 {
		a.forget(a.turns.first().waiting.head)
	}
	for a.invited.head != nil {
		a.forget(a.invited.head)
	}
	if all.used.Load() != 0 || all.peers.Load() != 0 {
		t.Errorf("at the end %d bytes and %d peers", all.used.Load(), all.peers.Load())
	}
}

// TestArrivalsOfFlood: of a peer that asks for a thousand messages and sends none,
// another one waits for a turn's time, not for all of them.
func TestArrivalsOfFlood(t *testing.T) {
	all := NewInbound(400, 0, 1, nil)
	a, message, _ := arrivalsOf(t, all)
	for range 1000 {
		message(100)
	}
	in := peerOf(t, a)(100)
	turns := 0
	patience := all.patience()
	for now := patience; in.line != &a.invited; now += patience {
		if a.Admit(now); turns > 1000 {
			break
		}
		turns++
	}
	if turns > 1 {
		t.Errorf("it waited for %d turns", turns)
	}
}

// TestArrivalsOfOthers: an engine that has no message in line does not look at it again
// and again while others wait.
func TestArrivalsOfOthers(t *testing.T) {
	all := NewInbound(400, 0, 1, nil)
	a, message, _ := arrivalsOf(t, all)
	for range 8 {
		message(100)
	}
	e, _, _, _ := newNull(t)
	e.arrivals, e.inLines = a, true
	before := e.Deadline()
	if e.Retry(0); e.Deadline() != before {
		t.Errorf("its deadline is %v, was %v", e.Deadline(), before)
	}
}
