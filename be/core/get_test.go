package core

import (
	"bytes"
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
)

// TestGet: offered messages are read by the receiver, within its own window, and
// the sender has nothing posted for them.
func TestGet(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, _ := w.open(0)
	from, to := w.sides[0], w.sides[1]
	if err := from.e.SetGet(own, true); err != nil {
		t.Fatal(err)
	}
	var f flow
	for range 4 {
		w.send(from, own, &f, 60_000, 0)
	}
	peak := 0
	for w.step() {
		peak = max(peak, to.e.window.Posted())
		if from.e.window.Posted() != 0 {
			t.Fatalf("the sender has %d bytes posted", from.e.window.Posted())
		}
	}
	if peak > 8192 || peak < 4096 {
		t.Errorf("at most %d bytes were asked for at a time, the window is 8192", peak)
	}
	for i, b := range to.got[own.id] {
		if !bytes.Equal(b, f.sent[i]) || f.ended[i] != nil {
			t.Errorf("message %d differs or ended with %v", i, f.ended[i])
		}
	}
	a, b := from.e.Stats(), to.e.Stats()
	if a.Offered != 4 || a.Sent != 4 || a.Fragments != 0 || b.ReadBytes != 240_000 || b.Received != 4 || b.WindowStalls == 0 {
		t.Errorf("sender %+v, receiver %+v", a, b)
	}
	w.end()
}

// TestGetWithOldPeer: a peer that does not know get mode is never offered anything.
func TestGetWithOldPeer(t *testing.T) {
	cfg := testConfig()
	cfg.Get = false
	w := newWorld(t, 1, cfg)
	own, _ := w.open(0)
	if err := own.e.SetGet(own, true); !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	var f flow
	w.send(w.sides[0], own, &f, 60_000, 0)
	w.settle()
	if len(w.sides[1].got[own.id]) != 1 || w.sides[0].e.Stats().Fragments == 0 {
		t.Error("the message was not written")
	}
	w.end()
}

// TestGetOfUnreadable: what lies in memory that peers may not read is written, among
// messages that are offered.
func TestGetOfUnreadable(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, _ := w.open(0)
	from, to := w.sides[0], w.sides[1]
	if err := from.e.SetGet(own, true); err != nil {
		t.Fatal(err)
	}
	var f flow
	for i := range 6 {
		w.mem.shut = i%2 == 1
		w.send(from, own, &f, 20_000+i, 0)
		w.settle()
	}
	for i, b := range to.got[own.id] {
		if !bytes.Equal(b, f.sent[i]) || f.ended[i] != nil {
			t.Errorf("message %d differs or ended with %v", i, f.ended[i])
		}
	}
	if st := from.e.Stats(); st.Offered != 3 || st.Rendezvous != 3 || len(to.got[own.id]) != 6 {
		t.Errorf("%d offered and %d written of %d", st.Offered, st.Rendezvous, len(to.got[own.id]))
	}
	w.end()
}

// TestOfferedBufferIsKept: a sender that gives an offered message up, or closes the
// socket, keeps the buffer until the peer reads it no more. In the control it does
// not, and the peer reads memory that is somebody else's by then.
func TestOfferedBufferIsKept(t *testing.T) {
	stray := 0
	for _, control := range []bool{false, true} {
		for _, seed := range seeds(t, 60) {
			cfg := testConfig()
			cfg.Linger = 1
			w := newWorld(t, seed, cfg)
			w.astray = control
			own, peer := w.open(0)
			from := w.sides[0]
			from.e.SetGet(own, true)
			var f flow
			for i := range 3 {
				w.send(from, own, &f, 60_000, uint64(i+1))
			}
			for range w.rng.IntN(300) {
				w.step()
			}
			switch seed % 3 {
			case 0:
				from.e.Cancel(own, 1+seed%2)
			case 1:
				from.e.CloseSocket(w.now, own)
			case 2:
				w.sides[1].e.CloseSocket(w.now, peer)
			}
			if control {
				for m := own.requested.head; m != nil; m = own.requested.head {
					from.e.endOutgoing(m, ErrCanceled)
				}
				from.e.releaseOffers(own)
				for range 3000 {
					w.step()
					stray += w.sides[1].qp.stray
				}
				continue
			}
			w.settle()
			for i, err := range f.ended {
				if err == errPending {
					t.Fatalf("seed %d: message %d never ended", seed, i)
				}
			}
			if w.sides[0].failed != nil || w.sides[1].failed != nil {
				t.Fatalf("seed %d: failed with %v and %v", seed, w.sides[0].failed, w.sides[1].failed)
			}
			w.end()
		}
	}
	if stray == 0 {
		t.Error("the control never read freed memory: the test shows nothing")
	}
}

// TestFlushedIsNotDone: when the device ends a queue pair by itself and completes
// the flushed requests before it says why, no message counts as sent or read. The
// callers hear the cause.
func TestFlushedIsNotDone(t *testing.T) {
	for _, get := range []bool{false, true} {
		for _, size := range []int{100, 60_000} {
			for _, seed := range seeds(t, 40) {
				w := newWorld(t, seed, testConfig())
				own, _ := w.open(0)
				own.e.SetGet(own, get)
				var f flow
				for range 5 {
					w.send(w.sides[0], own, &f, size, 0)
				}
				for range w.rng.IntN(150) {
					w.step()
				}
				silent := 0
				for _, s := range w.sides {
					for s.poll(w.now, true) || s.poll(w.now, false) { // what succeeded before
					}
					silent += s.e.chain.InFlight() - len(s.qp.acks) - len(s.qp.sq)
				}
				if silent > 0 {
					continue // requests that succeeded and are not signaled will count as done
				}
				told, got := 0, len(w.sides[1].got[own.id])
				for _, err := range f.ended {
					if err == nil {
						told++
					}
				}
				for _, s := range w.sides {
					s.qp.state = 0
					s.qp.flush()
					for s.poll(w.now, false) {
					}
				}
				for i, err := range f.ended {
					if err == nil {
						told--
					}
					if err != nil && err != errPending {
						t.Errorf("seed %d: message %d ended with %v before the cause is known", seed, i, err)
					}
				}
				if told != 0 || len(w.sides[1].got[own.id]) != got {
					t.Fatalf("get %v, %d bytes, seed %d: flushed requests count as done: %d sent, %d received", get, size, seed, -told, len(w.sides[1].got[own.id])-got)
				}
				for _, s := range w.sides {
					s.e.Fail(w.now, cq.RemoteAccessError)
					for s.poll(w.now, true) {
					}
				}
				for i, err := range f.ended {
					if err != nil && !errors.Is(err, cq.RemoteAccessError) {
						t.Errorf("seed %d: message %d ended with %v, want the cause", seed, i, err)
					}
				}
				w.end()
			}
		}
	}
}
