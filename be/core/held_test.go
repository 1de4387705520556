package core

import (
	"errors"
	"testing"
)

// unread is a side whose application takes no message of one socket.
type unread struct {
	*side
	k    *Socket
	kept []meshMessage
}

func (u *unread) Message(k *Socket, b []byte, reserved int) {
	if k == u.k {
		u.kept = append(u.kept, meshMessage{k, b, reserved})
	} else {
		u.side.Message(k, b, reserved)
	}
}

// take has the application take the oldest message, and reports whether Room was due.
func (u *unread) take(w *world) (room bool) {
	x := u.kept[0]
	u.kept = u.kept[1:]
	u.mem.Free(x.b)
	u.e.Taken(x.k, 1)
	if room = x.k.Release(x.reserved); room {
		u.e.Room(w.now, x.k)
	}
	return room
}

// unreadWorld is a world whose second side leaves a socket unread, to which n messages of
// 5000 bytes come, with a quota of 12000 bytes a socket and 20000 a node.
func unreadWorld(t *testing.T, n int, change func(*Config)) (w *world, u *unread, own, other *Socket, f *flow) {
	cfg := testConfig()
	cfg.SocketQuota = 12_000
	change(&cfg)
	w = newWorld(t, 1, cfg)
	own, peer := w.open(0)
	other, _ = w.open(0)
	u = &unread{side: w.sides[1], k: peer}
	u.e.h = u
	u.quota.limit = 20_000
	f = new(flow)
	for i := range n {
		w.send(w.sides[0], own, f, 5000, uint64(i+1))
	}
	w.run()
	return w, u, own, other, f
}

// run lets much happen, and some time pass: where memory is missing that has no end.
func (w *world) run() {
	for range 10_000 {
		w.step()
	}
}

// TestUnreadSocketHoldsUpItself: a socket whose messages nobody takes holds no more than
// its quota, its further messages cost no time, and those of another one pass. Each that
// is taken lets one in. In the control without a quota of sockets it takes all that the
// node has, and the other gets nothing.
func TestUnreadSocketHoldsUpItself(t *testing.T) {
	for _, quota := range []int{12_000, 0} {
		w, u, _, other, f := unreadWorld(t, 6, func(c *Config) { c.SocketQuota = quota })
		want := map[int]int{12_000: 2, 0: 4}[quota]
		if len(u.kept) != want || u.quota.used != want*5000 {
			t.Errorf("quota %d: the socket holds %d messages, %d bytes; want %d", quota, len(u.kept), u.quota.used, want)
		}
		if st := u.e.Stats(); st.Held != uint64(6-want) || st.Waiting != st.Held {
			t.Errorf("quota %d: %d messages were held, %d wait, want %d", quota, st.Held, st.Waiting, 6-want)
		}
		if idle := u.e.Deadline() == Never; idle != (quota > 0) {
			t.Errorf("quota %d: the engine waits until %v", quota, u.e.Deadline())
		}
		var g flow
		w.send(w.sides[0], other, &g, 5000, 0)
		w.run()
		if passed := len(u.got[other.id]) == 1; passed != (quota > 0) {
			t.Errorf("quota %d: a message of another socket passed: %v", quota, passed)
		}
		for i := range 6 {
			if len(u.kept) == 0 {
				t.Fatalf("quota %d: message %d does not come", quota, i)
			}
			if room := u.take(w); room != (quota > 0 && i < 4) {
				t.Errorf("quota %d: message %d was taken, and Room is due: %v", quota, i, room)
			}
			w.run()
		}
		if f.calls != 6 || g.calls != 1 || u.quota.used != 0 || u.k.inUse.Load() != 0 {
			t.Errorf("quota %d: %d and %d messages ended, %d bytes are in use, %d of the socket", quota, f.calls, g.calls, u.quota.used, u.k.inUse.Load())
		}
		w.end()
	}
}

// TestGivenUpMakesRoom: when a message that counts is given up, before it has memory,
// while it is written, or by its time, those behind it go on, though nobody takes anything.
func TestGivenUpMakesRoom(t *testing.T) {
	for _, get := range []bool{false, true} {
		for _, lacks := range []bool{false, true} { // memory
			w, u, own, _, f := unreadWorld(t, 0, func(*Config) {})
			w.sides[0].e.SetGet(own, get)
			lack := 0
			if lacks {
				lack, u.quota.used = 1, u.quota.limit
			}
			for i := range 6 {
				w.send(w.sides[0], own, f, 5000, uint64(i+1))
			}
			for u.e.Stats().Waiting+uint64(2*(1-lack)) != 6 {
				w.step()
			}
			w.sides[0].e.Cancel(own, 3) // one that is parked
			for tag := uint64(1); tag <= 2; tag++ {
				w.sides[0].e.Cancel(own, tag)
			}
			if lacks {
				u.quota.used -= u.quota.limit
			}
			w.run()
			got := 0
			for len(u.kept) > 0 {
				u.take(w)
				w.run()
				got++
			}
			if f.calls != 6 || got < 3 || got > 5 || u.quota.used != 0 || u.k.inUse.Load() != 0 || u.k.parked != 0 || u.e.Stats().Waiting != 0 {
				t.Errorf("get %v, lacks %v: %d messages came, %d ended, %d bytes are in use, %d of the socket; %d wait", get, lacks, got, f.calls, u.quota.used, u.k.inUse.Load(), u.k.parked)
			}
			w.end()
		}
	}
}

// TestParkedTimeout: what waits for its socket to be read is rejected in time too, and the
// rest goes on.
func TestParkedTimeout(t *testing.T) {
	w, u, own, _, f := unreadWorld(t, 6, func(c *Config) { c.HoldTimeout = 50_000_000 })
	if len(u.kept) != 2 || f.calls != 6 || w.now < 50_000_000 {
		t.Errorf("%d messages came, %d ended, at %v", len(u.kept), f.calls, w.now)
	}
	u.take(w)
	w.send(w.sides[0], own, f, 5000, 0)
	w.settle()
	if len(u.kept) != 2 || f.ended[6] != nil {
		t.Errorf("a message after that: %v", f.ended[6])
	}
	for len(u.kept) > 0 {
		u.take(w)
	}
	w.end()
}

// TestOneSocketStopsNoOther: messages of one socket that lack memory, more than a walk looks
// at, hold up none of another for which there is some, though none ever comes back: what
// has memory when it comes gets it at once, and what has some later is found.
func TestOneSocketStopsNoOther(t *testing.T) {
	for _, get := range []bool{false, true} {
		for _, sockets := range []int{1, 5 * maxLooked} {
			cfg := testConfig()
			cfg.Backlog, cfg.PeerBacklog, cfg.MaxSockets = 256, 256, 256
			w := newWorld(t, 1, cfg)
			to := w.sides[1]
			to.quota.limit = 1 << 20
			var f, g flow
			var own []*Socket
			for range sockets {
				k, _ := w.openBy(0, (*Engine).OpenUnordered)
				w.sides[0].e.SetGet(k, get)
				own = append(own, k)
			}
			other, _ := w.open(0)
			for i := range 5 * maxLooked {
				w.send(w.sides[0], own[i%sockets], &f, 5000, 0)
			}
			w.mem.full = func(n int) bool { return n == 5000 }
			w.run()
			if to.e.held.n != 5*maxLooked {
				t.Fatalf("%d messages wait: the test shows nothing", to.e.held.n)
			}
			for i, n := range []int{3000, 6000, 3000} {
				w.mem.full = nil
				w.send(w.sides[0], other, &g, n, 0)
				w.mem.full = func(n int) bool { return n == 5000 || i > 0 && n >= 3000 } // then it has to be found
				start := w.now
				for i == 0 && len(to.got[other.id]) == 0 && w.step() {
				}
				if i == 0 && w.now-start >= MemoryRetry {
					t.Errorf("get %v, %d sockets: a message for which there is memory waited for %v", get, sockets, w.now-start)
				}
				w.run()
				w.mem.full = func(n int) bool { return n == 5000 }
				w.run()
			}
			if n := len(to.got[other.id]); n != 3 {
				t.Errorf("get %v, %d sockets: %d messages of another one came, want 3", get, sockets, n)
			}
			w.mem.full = nil
			w.settle()
			if f.calls != len(f.sent) || errors.Join(f.ended...) != nil {
				t.Errorf("get %v, %d sockets: %d of %d messages ended: %v", get, sockets, f.calls, len(f.sent), errors.Join(f.ended...))
			}
			w.end()
		}
	}
}

// coming is a world with a message of 5000 bytes on the first of two sockets, whose memory
// is being made ready at the second side.
func coming(t *testing.T) (w *world, own, other *Socket, f *flow) {
	w, f = newWorld(t, 1, testConfig()), new(flow)
	own, _ = w.open(0)
	other, _ = w.open(0)
	w.send(w.sides[0], own, f, 5000, 0)
	w.mem.late = 5000
	w.run()
	if in := w.sides[1].e.held.head; in == nil || !in.coming {
		t.Fatal("no message waits for its memory: the test shows nothing")
	}
	return w, own, other, f
}

// TestMemoryThatComesStopsNobody: however many messages pass one whose memory is being made
// ready, they do not wait for it.
func TestMemoryThatComesStopsNobody(t *testing.T) {
	w, own, other, f := coming(t)
	to := w.sides[1]
	var g flow
	const n = maxPassed + 100
	for i := range n {
		w.send(w.sides[0], other, &g, 2000, 0)
		for start := w.now; len(to.got[other.id]) <= i; w.step() {
			if w.now-start >= maxStop {
				t.Fatalf("message %d of %d waits", i, n)
			}
		}
	}
	if w.mem.late = 0; len(to.got[own.id]) != 0 {
		t.Error("the test shows nothing")
	}
	if w.settle(); f.calls != 1 || g.calls != n {
		t.Errorf("%d and %d messages ended", f.calls, g.calls)
	}
	w.end()
}

// TestMemoryThatCameStops: when the memory of a message was made ready, and then the quota
// has no room for it, others pass it no more than any that waits.
func TestMemoryThatCameStops(t *testing.T) {
	w, _, other, f := coming(t)
	to := w.sides[1]
	var g flow
	w.mem.late = 0
	limit := to.quota.limit
	to.quota.used, to.quota.limit = 2000, 6000
	to.e.Retry(w.now)
	w.send(w.sides[0], other, &g, 2000, 0)
	w.run()
	if in := to.e.held.head; g.calls != 1 || in == nil || in.passed != 1 {
		t.Errorf("%d messages ended, and what waits: %+v", g.calls, in)
	}
	to.quota.used, to.quota.limit = to.quota.used-2000, limit
	if w.settle(); f.calls != 1 {
		t.Errorf("%d messages ended", f.calls)
	}
	w.end()
}
