package core

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
)

// seeds gives the seeds of a property test: BE_SEED, or the first n.
func seeds(t *testing.T, n int) []uint64 {
	if s := os.Getenv("BE_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{v}
	}
	if testing.Short() {
		n = max(n/10, 1)
	}
	l := make([]uint64, n)
	for i := range l {
		l[i] = uint64(i)
	}
	return l
}

// flow is what one side sends on one socket.
type flow struct {
	sent  [][]byte
	ended []error
	calls int
}

// send queues a message of n bytes with content that depends on its number.
func (w *world) send(s *side, k *Socket, f *flow, n int, tag uint64) {
	fail := w.mem.fail
	w.mem.fail = false
	b, err := w.mem.Alloc(n)
	w.mem.fail = fail
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range b {
		b[i] = byte(i*7 + len(f.sent)*13 + int(k.id))
	}
	i := len(f.sent)
	f.sent = append(f.sent, append([]byte(nil), b...))
	f.ended = append(f.ended, errPending)
	key, _ := w.mem.LKey(b)
	s.e.Send(k, b, key, tag, func(err error) {
		f.calls++
		if f.ended[i] != errPending {
			w.t.Errorf("message %d ended twice", i)
		}
		f.ended[i] = err
		if err == nil {
			w.mem.Free(b)
		}
	})
}

var errPending = errors.New("pending")

// TestRandomSchedules drives two engines over a device whose events come in any
// order, with messages of all sizes both ways, quotas that hold back, memory
// that runs out for a while, cancels, and sockets closed in the middle. What was
// sent well arrives once, whole and in order; nothing is left, and what was granted is
// what was posted (case C14).
func TestRandomSchedules(t *testing.T) {
	for _, seed := range seeds(t, 150) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { randomSchedule(t, seed) })
		if t.Failed() {
			return
		}
	}
}

func randomSchedule(t *testing.T, seed uint64) {
	cfg := testConfig()
	r := rand.New(rand.NewPCG(seed, 4))
	if r.IntN(2) == 0 {
		cfg.WindowTarget = time.Duration(1 + r.IntN(200))
	}
	if r.IntN(2) == 0 {
		// Every engine here is flushed again and again: nobody needs to be woken.
		cfg.Cap = NewCap(2048+r.IntN(8192), func(Handler) {})
	}
	w := newRandomWorld(t, r, seed, &cfg, 8)
	ends := w.openEnds(r, 1+r.IntN(4))
	closed := map[*end]bool{}
	tag := uint64(0)
	for range 400 {
		switch x := r.IntN(20); {
		case x < 4:
			e := ends[r.IntN(len(ends))]
			tag++
			w.send(e.s, e.k, &e.f, []int{0, 1, 100, 1024, 1025, 2048, 2049, 5000, 20000, 100000}[r.IntN(10)], tag)
		case x == 4 && tag > 0:
			e := ends[r.IntN(len(ends))]
			e.s.e.Cancel(e.k, 1+uint64(r.IntN(int(tag))))
		case x == 5 && r.IntN(30) == 0:
			e := ends[r.IntN(len(ends))]
			closed[e] = true
			e.s.e.CloseSocket(w.now, e.k)
		case x == 6 && r.IntN(5) == 0:
			w.mem.fail = !w.mem.fail
		case x == 6:
			w.mem.fail = false
		default:
			for range r.IntN(10) {
				fail := w.mem.fail
				w.step()
				w.mem.fail = fail
			}
		}
		if w.mem.fail && r.IntN(4) == 0 {
			w.mem.fail = false
		}
	}
	w.mem.fail = false
	w.settle()
	for i, e := range ends {
		got := e.peer.s.got[e.k.id]
		if e.k.unordered != e.peer.k.unordered {
			t.Fatalf("end %d: unordered %v, the peer %v", i, e.k.unordered, e.peer.k.unordered)
		}
		next := 0
		for m, err := range e.f.ended {
			if err == errPending {
				t.Fatalf("end %d: message %d of %d never ended", i, m, len(e.f.ended))
			}
			if err != nil && (!e.k.get || len(e.f.sent[m]) <= cfg.EagerLimit) {
				continue // given up before it was whole: never delivered
			}
			at := next
			for e.k.unordered && at < len(got)-1 && !bytes.Equal(got[at], e.f.sent[m]) {
				at++
			}
			if at < len(got) && bytes.Equal(got[at], e.f.sent[m]) {
				got[next], got[at] = got[at], got[next]
				next++
			} else if err == nil && !closed[e.peer] { // one that the peer had read may be told an error
				t.Fatalf("end %d: message %d was sent well and is not next at the receiver", i, m)
			}
		}
		if next != len(got) {
			t.Fatalf("end %d: the receiver has %d messages, %d of them were sent", i, len(got), next)
		}
	}
	for _, s := range w.sides {
		if s.failed != nil {
			t.Fatalf("%s failed: %v", s.name, s.failed)
		}
		if s.qp.rnr != 0 {
			t.Errorf("%s found no receive %d times", s.name, s.qp.rnr)
		}
	}
	// At rest, what each granted is what it ever posted.
	for i, s := range w.sides {
		p := w.sides[1-i]
		if s.e.credits.granted != p.e.credits.posted || Count(p.e.recv.posted) != p.e.credits.posted {
			t.Errorf("%s knows of %d receives, the peer posted %d", s.name, s.e.credits.granted, p.e.recv.posted)
		}
	}
	w.end()
	if cfg.Cap != nil && (cfg.Cap.posted != 0 || cfg.Cap.head != nil) {
		t.Errorf("at the end %d bytes count as posted, an engine waits: %v", cfg.Cap.posted, cfg.Cap.head != nil)
	}
	cfg.Arrivals.none(t)
}

// TestFailureEndsEverythingOnce fails an engine at a random moment, with work in
// every state. Each message and socket ends once, and memory returns only after
// the flush.
func TestFailureEndsEverythingOnce(t *testing.T) {
	for _, seed := range seeds(t, 100) {
		w := newWorld(t, seed, testConfig())
		own, peer := w.open(0)
		own.e.SetGet(own, seed%2 == 0)
		peer.e.SetGet(peer, seed%4 < 2)
		var up, down flow
		for i := range 40 {
			w.send(w.sides[0], own, &up, []int{0, 64, 100, 9000, 12000}[i%5], uint64(i+1))
			w.send(w.sides[1], peer, &down, (i%4)*3000, 0)
		}
		for range w.rng.IntN(400) {
			w.step()
		}
		cause := errors.New("pulled")
		inFlight := w.sides[0].e.chain.InFlight()
		w.sides[0].e.Fail(w.now, cause)
		for i, err := range up.ended {
			if err == errPending {
				t.Fatalf("seed %d: message %d was not told at once", seed, i)
			}
		}
		if w.sides[0].down && inFlight > 0 {
			t.Fatalf("seed %d: down with %d requests in flight", seed, inFlight)
		}
		if err := w.sides[0].ended[own]; !errors.Is(err, cause) {
			t.Fatalf("seed %d: socket ended with %v", seed, err)
		}
		w.settle()
		// The peer finds out by its next request, or is told.
		w.sides[1].e.Fail(w.now, cq.RetryExceededError)
		w.settle()
		if up.calls != len(up.sent) || down.calls != len(down.sent) {
			t.Fatalf("seed %d: %d and %d calls for %d and %d messages", seed, up.calls, down.calls, len(up.sent), len(down.sent))
		}
		w.end()
	}
}

// TestNoRNRWithCredits is case C13: random delays on the receiver's side, SENDs
// and WRITE_WITH_IMMs, and never a request without a receive. In the control the
// sender believes in many more receives than there are.
func TestNoRNRWithCredits(t *testing.T) {
	run := func(peerDepth int, retry bool) (w *world, f flow) {
		cfg := testConfig()
		cfg.RecvDepth, cfg.PeerDepth = 32, peerDepth
		cfg.Backlog, cfg.PeerBacklog = 1<<16, 1<<16
		w = newWorld(t, 5, cfg)
		for _, s := range w.sides {
			s.qp.retryRNR = retry
		}
		own, _ := w.open(0)
		const messages = 10000
		for i := range messages {
			n := 64
			if i%10 == 0 {
				n = 1500
			}
			w.send(w.sides[0], own, &f, n, 0)
			for range w.rng.IntN(6) {
				w.step()
			}
		}
		w.settle()
		return w, f
	}
	w, f := run(32, true)
	a, b := w.sides[0], w.sides[1]
	if a.qp.rnr+b.qp.rnr != 0 || a.failed != nil || b.failed != nil {
		t.Errorf("RNR %d and %d, failures %v and %v", a.qp.rnr, b.qp.rnr, a.failed, b.failed)
	}
	if f.calls != len(f.sent) {
		t.Errorf("%d of %d messages ended", f.calls, len(f.sent))
	}
	// k = d/2 = 16 receives are replaced at a time, and a count goes out for each.
	consumed := int(a.e.credits.consumed)
	if got := int(b.e.Stats().RecvPosts); got != consumed/16 {
		t.Errorf("%d posts of receives for %d consumed, want %d", got, consumed, consumed/16)
	}
	w.end()

	w, f = run(1<<20, true)
	if w.sides[0].qp.rnr == 0 || w.sides[0].failed != nil || f.calls != len(f.sent) {
		t.Errorf("control without credits: RNR %d, failure %v: the test shows nothing", w.sides[0].qp.rnr, w.sides[0].failed)
	}
	w.end()
	w, _ = run(1<<20, false)
	if !errors.Is(w.sides[0].failed, cq.RNRRetryExceededError) {
		t.Errorf("control without credits and retries: %v", w.sides[0].failed)
	}
	w.end()
}

// TestWindowBoundsPostedBytes and is independent of credits (cases C11, C15).
func TestWindowBoundsPostedBytes(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, _ := w.open(0)
	var f flow
	for range 4 {
		w.send(w.sides[0], own, &f, 60000, 0)
	}
	peak, s := 0, w.sides[0]
	for w.step() {
		peak = max(peak, s.e.window.Posted())
	}
	st := s.e.Stats()
	if peak > 8192 || peak < 8192/2 {
		t.Errorf("at most %d bytes were posted, the window is 8192", peak)
	}
	if st.WindowStalls == 0 || st.WindowStall == 0 {
		t.Errorf("stats %+v", st)
	}
	w.end()
}

// TestRoundRobin: two sockets with large messages share the wire to within one
// fragment, and a third's small message does not wait for them.
func TestRoundRobin(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	var flows [2]flow
	var socks [2]*Socket
	for i := range socks {
		socks[i], _ = w.open(0)
	}
	for i := range socks {
		for range 3 {
			w.send(w.sides[0], socks[i], &flows[i], 20000, 0)
		}
	}
	left := func(k *Socket) (n int) {
		for m := k.writing.head; m != nil; m = m.next {
			n += m.length - m.offset
		}
		return n
	}
	w.sides[1].quota.limit = 1 << 20
	// With the window shut, everything is granted and waits.
	s := w.sides[0]
	s.e.window.posted = 8192
	w.settle()
	s.e.window.posted = 0
	if left(socks[0]) != 60000 || left(socks[1]) != 60000 {
		t.Fatalf("%d and %d bytes wait, want 60000 each", left(socks[0]), left(socks[1]))
	}
	for w.step() {
		if d := left(socks[0]) - left(socks[1]); d > 2048 || d < -2048 {
			t.Fatalf("one socket is %d bytes ahead", d)
		}
	}
	w.end()
}

// TestGoodbye: what is queued is sent, then both sides end in good order.
func TestGoodbye(t *testing.T) {
	for _, seed := range seeds(t, 50) {
		w := newWorld(t, seed, testConfig())
		own, _ := w.open(0)
		var f flow
		for i := range 20 {
			w.send(w.sides[0], own, &f, i*1000, 0)
		}
		w.sides[0].e.Goodbye(w.now, w.now+1e8)
		w.settle()
		for i, err := range f.ended {
			if err != nil {
				t.Fatalf("seed %d: message %d: %v", seed, i, err)
			}
		}
		if got := len(w.sides[1].got[own.id]); got != 20 {
			t.Fatalf("seed %d: %d messages arrived", seed, got)
		}
		if !errors.Is(w.sides[0].failed, ErrClosed) || !errors.Is(w.sides[1].failed, ErrPeerClosed) {
			t.Fatalf("seed %d: ends %v and %v", seed, w.sides[0].failed, w.sides[1].failed)
		}
		w.end()
	}
}

func TestRefusedSocket(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	w.sides[1].refuse = true
	k, err := w.sides[0].e.Open(1, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	if err := w.sides[0].opened[k]; !errors.Is(err, ErrRefused) {
		t.Errorf("opened with %v", err)
	}
	if w.sides[0].e.Sockets()+w.sides[1].e.Sockets() != 0 {
		t.Error("sockets are left")
	}
	w.end()
}

func TestSocketLimit(t *testing.T) {
	cfg := testConfig()
	cfg.MaxSockets = 5
	for side := range 2 {
		w := newWorld(t, 1, cfg)
		opened := 0
		for range 10 {
			if _, err := w.sides[side].e.Open(1, "x", nil); err == nil {
				opened++
			} else if !errors.Is(err, ErrSockets) {
				t.Fatal(err)
			}
		}
		w.settle()
		if opened != 5 || w.sides[1-side].failed != nil {
			t.Errorf("side %d: %d sockets, peer %v", side, opened, w.sides[1-side].failed)
		}
		w.end()
	}
}

// TestSlotsReturnOnlyByCompletions is the control of case C11: an engine that
// took a receive completion for a sign that its own sends are done would post to
// a full queue. The engine as it is does not, whatever the order.
func TestSlotsReturnOnlyByCompletions(t *testing.T) {
	run := func(wrong bool) (full int) {
		cfg := testConfig()
		cfg.SendDepth = 4
		w := newWorld(t, 3, cfg)
		own, peer := w.open(0)
		var up, down flow
		for range 100 {
			w.send(w.sides[0], own, &up, 64, 0)
			w.send(w.sides[1], peer, &down, 64, 0)
		}
		for range 4000 {
			if wrong {
				for _, s := range w.sides {
					if len(s.qp.recvs) > 0 && s.e.chain.InFlight() > 0 {
						s.e.freeSlot(s.e.chain.release(), true)
					}
				}
			}
			// Acknowledgements come late.
			for _, s := range w.sides {
				s.qp.carry()
				for s.poll(w.now, true) {
				}
				if w.rng.IntN(20) == 0 {
					s.qp.ack()
					s.poll(w.now, false)
				}
				s.e.Flush(w.now)
			}
		}
		return w.sides[0].qp.full + w.sides[1].qp.full
	}
	if n := run(false); n != 0 {
		t.Errorf("the queue was full at %d posts", n)
	}
	if n := run(true); n == 0 {
		t.Error("the control never filled the queue: the test shows nothing")
	}
}
