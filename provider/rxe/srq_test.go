//go:build linux

package rxe

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// shared makes a shared receive queue and a queue pair of it in a stand.
func shared(t *testing.T, pd verbs.PD, q cq.CQ) (*sharedQueue, *queuePair) {
	t.Helper()
	s, err := pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 4, RecvSGE: 2}})
	must(t, err)
	closeLater(t, s)
	p, err := pd.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: fakeCaps, SRQ: s})
	must(t, err)
	closeLater(t, p)
	return s.(*sharedQueue), p.(*queuePair)
}

// Events of a shared receive queue name it, also while it is closed: destroying
// waits until every event that the kernel handed out was processed.
func TestSRQEvents(t *testing.T) {
	k := newFake(t)
	ctx, pd, q, _ := stand(t, k)
	s, p := shared(t, pd, q)
	for _, typ := range []verbs.EventType{verbs.EventSRQLimit, verbs.EventSRQError} {
		k.event(s.User, typ)
		if e, err := ctx.NextEvent(context.Background()); err != nil || e != (verbs.Event{Type: typ, SRQ: s}) {
			t.Errorf("event %+v, %v", e, err)
		}
	}
	must(t, p.Close())
	k.mu.Lock()
	k.reported = 3
	k.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	for !s.Closed() { // destroyed in the kernel
		select {
		case err := <-done:
			t.Fatalf("closed with an event outstanding: %v", err)
		default:
		}
	}
	if n, err := s.PostRecv([]qp.RecvWR{{}}); n != 0 || err != qp.ErrClosed {
		t.Errorf("post while it is being closed: %d, %v", n, err)
	}
	if err := s.Close(); !errors.Is(err, qp.ErrClosed) {
		t.Errorf("second close while the first waits: %v", err)
	}
	k.event(s.User, verbs.EventSRQLimit)
	must(t, <-done)
	k.mu.Lock()
	k.reported = 0
	k.mu.Unlock()
}

// When the device is gone a shared receive queue says so, and can be closed.
func TestSRQDeviceLost(t *testing.T) {
	noLeaks(t)
	k := newFake(t)
	ctx, pd, q, own := stand(t, k)
	s, p := shared(t, pd, q)
	k.mu.Lock()
	k.fail = func(int, *uverbs.Call) syscall.Errno { return unix.EIO }
	k.mu.Unlock()
	k.events[0].Close()
	if _, err := ctx.NextEvent(context.Background()); !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("event: %v", err)
	}
	if n, err := s.PostRecv([]qp.RecvWR{{}}); n != 0 || err != verbs.ErrDeviceLost {
		t.Errorf("post: %d, %v", n, err)
	}
	_, query := s.Query()
	for what, err := range map[string]error{"arm": s.Arm(1), "query": query, "resize": q.Resize(4)} {
		if !errors.Is(err, verbs.ErrDeviceLost) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, c := range []interface{ Close() error }{p, s, own, q, pd, ctx} {
		must(t, c.Close())
	}
}

// A resized queue that cannot be mapped has overflowed: its completions are in a
// ring that nobody can read.
func TestResizedQueueNotMapped(t *testing.T) {
	k := newFake(t)
	_, _, q, _ := stand(t, k)
	must(t, q.Resize(8))
	maps := mmio.Live()
	k.bad = "cq"
	if err := q.Resize(4); err == nil {
		t.Fatal("a queue of no sense was taken")
	}
	k.bad = ""
	var buf [1]cq.Completion
	if _, err := q.Poll(buf[:]); err != cq.ErrOverflow {
		t.Errorf("poll: %v", err)
	}
	if n := mmio.Live(); n != maps {
		t.Errorf("%d mappings, %d before", n, maps)
	}
	must(t, q.Resize(4)) // the kernel moves what waits again, but what came meanwhile may be lost
	if _, err := q.Poll(buf[:]); err != cq.ErrOverflow {
		t.Errorf("poll: %v", err)
	}
}

// A refused resize leaves the queue as it was.
func TestResizeRefused(t *testing.T) {
	k := newFake(t)
	_, _, q, _ := stand(t, k)
	k.complete(cq.Completion{ID: 1, QPNum: 17})
	k.mu.Lock()
	k.fail = func(_ int, c *uverbs.Call) syscall.Errno {
		if c.Op == "resize completion queue" {
			return unix.EINVAL
		}
		return 0
	}
	k.mu.Unlock()
	if err := q.Resize(1); !errors.Is(err, unix.EINVAL) || q.Capacity() != fakeMask {
		t.Errorf("capacity %d, error %v", q.Capacity(), err)
	}
	var buf [4]cq.Completion
	if n, err := q.Poll(buf[:]); n != 1 || err != nil || buf[0].ID != 1 {
		t.Errorf("%d completions %+v, %v", n, buf[0], err)
	}
}
