package core

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// deadQP is a queue pair of a device that does not answer.
type deadQP struct{ *fakeQP }

func (q *deadQP) Modify(*qp.Attr, qp.AttrMask) error { return errors.New("no answer") }

// starved is a world with some messages of 100 bytes on a socket, told to be sent, that
// all lack memory at the second side.
func starved(t *testing.T, way func(*Engine, uint32, string, any) (*Socket, error)) (w *world, own, peer *Socket, f *flow) {
	cfg := testConfig()
	cfg.Linger, cfg.DrainTimeout = time.Hour, time.Minute
	w, f = newWorld(t, 1, cfg), new(flow)
	own, peer = w.openBy(0, way)
	for range 4 {
		w.send(w.sides[0], own, f, 100, 0)
	}
	w.starve()
	if n := w.sides[1].e.packed.n; n != 4 || f.calls != 4 {
		t.Fatalf("%d messages wait, %d were sent: the test shows nothing", n, f.calls)
	}
	return w, own, peer, f
}

// starve lets much happen without memory.
func (w *world) starve() {
	for range 2000 {
		w.mem.fail = true
		w.step()
	}
}

// TestEndBehindPackedMessages: however an engine ends, messages that had arrived, and lack
// memory for a while, are delivered before their sockets hear of it; who sends hears at
// once. After the linger time they are dropped, which the error says.
func TestEndBehindPackedMessages(t *testing.T) {
	lost := errors.New("lost")
	for _, tt := range []struct {
		desc string
		end  func(w *world, a, b *side)
		want error
	}{
		{"the peer left", func(w *world, a, _ *side) { a.e.Goodbye(w.now, w.now); w.starve() }, ErrPeerClosed},
		{"the peer is gone", func(w *world, _, b *side) { b.e.Fail(w.now, lost) }, lost},
		{"its request failed", func(w *world, _, b *side) {
			b.qp.fail(sent{}, cq.RetryExceededError)
			b.e.failedRequest(w.now, &cq.Completion{Status: cq.RetryExceededError})
		}, cq.RetryExceededError},
		{"its requests were flushed", func(w *world, _, b *side) {
			b.e.failedRequest(w.now, &cq.Completion{Status: cq.WRFlushError})
			w.starve()
		}, cq.WRFlushError},
		{"the peer lied", func(w *world, _, b *side) { b.e.Fail(w.now, protocolError(wire.Data, "x", 1, "0")) }, ErrProtocol},
		{"the device is gone", func(w *world, _, b *side) {
			b.e.qp = &deadQP{b.qp}
			b.e.Fail(w.now, lost)
			w.starve()
		}, lost},
	} {
		for _, memory := range []bool{true, false} {
			for _, drained := range []bool{true, false} {
				w, own, peer, f := starved(t, (*Engine).Open)
				b := w.sides[1]
				tt.end(w, w.sides[0], b)
				if !errors.Is(b.failed, tt.want) || b.ended[peer] != nil {
					t.Fatalf("%s: the engine ended with %v, the socket with %v", tt.desc, b.failed, b.ended[peer])
				}
				var g flow
				if w.send(b, peer, &g, 100, 0); !errors.Is(g.ended[0], tt.want) {
					t.Errorf("%s: a message sent meanwhile: %v", tt.desc, g.ended[0])
				}
				if drained {
					if w.starve(); !b.e.kept || !b.qp.closed {
						t.Fatalf("%s: it has not drained: the test shows nothing", tt.desc)
					}
				}
				if w.mem.fail = !memory; !memory {
					w.now += b.e.cfg.Linger
				}
				w.settle()
				want, end := f.sent, tt.want
				if !memory {
					want, end = nil, ErrDropped
				}
				if got := b.got[own.id]; !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("%s, memory %v: %d messages arrived, or changed", tt.desc, memory, len(got))
				}
				if !errors.Is(b.ended[peer], end) || !b.down {
					t.Errorf("%s, memory %v: the socket ended with %v, the engine is down: %v", tt.desc, memory, b.ended[peer], b.down)
				}
				w.end()
			}
		}
	}
}

// TestReceivesGiveMemory: when the queue pair has drained, the buffers of its receives are
// memory for what waits, though there is no other.
func TestReceivesGiveMemory(t *testing.T) {
	w, own, peer, _ := starved(t, (*Engine).Open)
	b := w.sides[1]
	left := 0
	w.mem.full = func(n int) bool { // a buffer that was freed is there again
		return len(w.mem.free[class(n)]) == 0
	}
	w.mem.fail = false
	clear(w.mem.free)
	w.mem.free[class(100)] = nil
	left = b.e.receiving()
	b.e.Fail(w.now, errors.New("lost"))
	w.settle()
	if n := len(b.got[own.id]); left < 4 || n != 4 || !b.down {
		t.Errorf("%d receives were posted, %d messages arrived, the socket ended with %v", left, n, b.ended[peer])
	}
	w.end()
}

// TestPackedOutOfReach: what is behind a message that will never be whole is not waited
// for, but on a socket without order.
func TestPackedOutOfReach(t *testing.T) {
	for _, tt := range []struct {
		way func(*Engine, uint32, string, any) (*Socket, error)
		got int
	}{{(*Engine).Open, 4}, {(*Engine).OpenUnordered, 7}} {
		w, own, peer, f := starved(t, tt.way)
		b, lost := w.sides[1], errors.New("lost")
		w.send(w.sides[0], own, f, 5000, 0)
		for range 3 {
			w.send(w.sides[0], own, f, 100, 0)
		}
		if w.starve(); b.e.packed.n != 7 || b.e.held.n != 1 {
			t.Fatalf("%d packed messages wait, and %d: the test shows nothing", b.e.packed.n, b.e.held.n)
		}
		b.e.Fail(w.now, lost)
		if n := b.e.packed.n; n != tt.got {
			t.Errorf("%d messages are kept, want %d", n, tt.got)
		}
		w.mem.fail = false
		w.settle()
		if n := len(b.got[own.id]); n != tt.got || !errors.Is(b.ended[peer], lost) || !b.down {
			t.Errorf("%d messages arrived, want %d; the socket ended with %v", n, tt.got, b.ended[peer])
		}
		w.end()
	}
}

// TestKeptStream: a stream whose engine ended ends where a message is missing that the peer
// gave up before.
func TestKeptStream(t *testing.T) {
	lost := errors.New("lost")
	for cause, want := range map[error]error{ErrPeerClosed: ErrMissing, lost: lost} {
		w, own, peer, f := starved(t, (*Engine).Open)
		b := w.sides[1]
		b.e.Stream(peer)
		w.send(w.sides[0], own, f, 5000, 1)
		for range 3 {
			w.send(w.sides[0], own, f, 100, 0)
		}
		w.starve()
		w.sides[0].e.Cancel(own, 1)
		if w.starve(); b.e.packed.n != 7 || b.e.held.n != 0 {
			t.Fatalf("%d packed messages wait, and %d: the test shows nothing", b.e.packed.n, b.e.held.n)
		}
		b.e.Fail(w.now, cause)
		w.mem.fail = false
		w.settle()
		if n := len(b.got[own.id]); n != 4 || !errors.Is(b.ended[peer], want) || !b.down {
			t.Errorf("%v: %d messages arrived, the socket ended with %v", cause, n, b.ended[peer])
		}
		w.end()
	}
}

// TestKeptNoMore: what was kept is dropped at once when nobody takes it: when its socket is
// closed on this side, or the node. A socket that the peer closed before is told that.
func TestKeptNoMore(t *testing.T) {
	lost := errors.New("lost")
	for _, how := range []string{"goodbye before", "goodbye", "closed", "closed by the peer"} {
		for _, drained := range []bool{true, false} {
			w, own, peer, _ := starved(t, (*Engine).Open)
			a, b := w.sides[0], w.sides[1]
			switch how {
			case "goodbye before":
				b.e.Goodbye(w.now, w.now+time.Hour)
			case "closed by the peer":
				a.e.CloseSocket(w.now, own)
				w.starve()
			}
			b.e.Fail(w.now, lost)
			if drained {
				w.starve()
			}
			want, got := lost, 0
			switch how {
			case "goodbye":
				b.e.Goodbye(w.now, w.now+time.Hour)
				want = ErrDropped
			case "closed":
				b.e.CloseSocket(w.now, peer)
				want = ErrClosed
			case "closed by the peer":
				want, got = ErrPeerClosed, 4
				w.mem.fail = false
			}
			w.settle()
			if n := len(b.got[own.id]); n != got || !errors.Is(b.ended[peer], want) || !b.down {
				t.Errorf("%s: %d messages arrived, the socket ended with %v, the engine is down: %v", how, n, b.ended[peer], b.down)
			}
			w.mem.fail = false
			w.end()
		}
	}
}

// TestKeptHoldsNoMore: when the queue pair has drained, a socket whose packed messages still
// wait holds nothing else: not what its other messages took of memory and quota, not what the
// peer could read or write.
func TestKeptHoldsNoMore(t *testing.T) {
	for _, get := range []bool{false, true} {
		cfg := testConfig()
		cfg.Linger, cfg.DrainTimeout = time.Hour, time.Minute
		w := newWorld(t, 1, cfg)
		a, b := w.sides[0], w.sides[1]
		own, peer := w.openBy(0, (*Engine).OpenUnordered)
		a.e.SetGet(own, get)
		b.e.SetGet(peer, get)
		var f, g flow
		w.send(a, own, &f, 50000, 0)
		for b.quota.used == 0 {
			w.step()
		}
		for _, s := range w.sides {
			s.e.window.posted = 8192 // long messages stay where they are
		}
		w.send(b, peer, &g, 50000, 0)
		for range 4 {
			w.send(a, own, &f, 100, 0)
		}
		lost, published := errors.New("lost"), error(nil)
		if _, err := b.e.Publish(peer, make([]byte, 100), writeKey, func(err error) { published = err }); err != nil {
			t.Fatal(err)
		}
		if w.starve(); b.e.packed.n != 4 || f.calls != 4 || f.ended[0] != errPending || b.quota.used == 0 {
			t.Fatalf("%d messages wait, %d were sent: the test shows nothing", b.e.packed.n, f.calls)
		}
		b.e.Fail(w.now, lost)
		w.starve()
		if !b.e.kept || b.down || b.quota.used != 0 || peer.offered.head != nil || published != lost {
			t.Errorf("kept %v, down %v: %d bytes of the quota are taken, the published buffer ended with %v", b.e.kept, b.down, b.quota.used, published)
		}
		w.mem.fail = false
		w.settle()
		if n := len(b.got[own.id]); n != 4 || !errors.Is(b.ended[peer], lost) || !b.down {
			t.Errorf("%d messages arrived, the socket ended with %v", n, b.ended[peer])
		}
		w.end()
	}
}

// TestGoodbyeBeforeStart: an engine that never was up has nothing to send, so it ends at
// once, though its device does not answer.
func TestGoodbyeBeforeStart(t *testing.T) {
	mem := newFakeMemory(arenaBytes)
	q, _ := newFakePair(t, mem, qp.Caps{SendWR: 32, RecvWR: 16, SendSGE: 6, RecvSGE: 2})
	s := &side{t: t, qp: q, mem: mem, quota: new(fakeQuota)}
	var err error
	if s.e, err = NewEngine(testConfig(), &deadQP{q}, mem, s.quota, s); err != nil {
		t.Fatal(err)
	}
	if err := s.e.Prepare(); err != nil {
		t.Fatal(err)
	}
	const now = time.Minute
	if s.e.Goodbye(now, now+time.Hour); s.e.Deadline() > now {
		t.Errorf("it is to be looked at in %v", s.e.Deadline()-now)
	}
	if s.e.Tick(now); !s.down || len(mem.live) != 0 {
		t.Errorf("down %v, %d buffers are allocated", s.down, len(mem.live))
	}
}
