//go:build linux

package rxe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

var fakeCaps = qp.Caps{SendWR: 8, RecvWR: 8, SendSGE: 2, RecvSGE: 2, Inline: 64}

// life makes one of everything on a device and closes it again, trying twice when
// that fails. It returns the first error.
func life(d *Device) (err error) {
	var open []interface{ Close() error }
	defer func() {
		for i := len(open) - 1; i >= 0; i-- {
			e := open[i].Close()
			if e == nil {
				continue
			}
			if err == nil {
				err = e
			}
			if e := open[i].Close(); e != nil {
				err = fmt.Errorf("close did not work the second time either: %v", e)
			}
		}
	}()
	ctx, err := d.Open()
	if err != nil {
		return err
	}
	open = append(open, ctx)
	pd, err := ctx.AllocPD()
	if err != nil {
		return err
	}
	open = append(open, pd)
	m, err := mmio.Anonymous(4096)
	if err != nil {
		return err
	}
	defer m.Close()
	r, err := pd.Register(m.Bytes(), mr.LocalWrite)
	if err != nil {
		return err
	}
	open = append(open, closer(func() error { return pd.Deregister(r) }))
	more, err := memory(pd, &r, m.Bytes())
	open = append(open, more...)
	if err != nil {
		return err
	}
	q, err := ctx.CreateCQ(verbs.CQConfig{Entries: 8})
	if err != nil {
		return err
	}
	open = append(open, q)
	p, err := pd.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: fakeCaps})
	if err != nil {
		return err
	}
	open = append(open, p)
	s, err := pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 4, RecvSGE: 2}})
	if err != nil {
		return err
	}
	open = append(open, s)
	shared, err := pd.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: fakeCaps, SRQ: s})
	if err != nil {
		return err
	}
	open = append(open, shared)
	if _, err := s.PostRecv([]qp.RecvWR{{}}); err != nil {
		return err
	}
	if err := s.Arm(1); err != nil {
		return err
	}
	if _, err := s.Query(); err != nil {
		return err
	}
	if err := q.Resize(9); err != nil {
		return err
	}
	path := qp.Path{MTU: qp.MTU1024, Global: true}
	if err := path.Connect(p); err != nil {
		return err
	}
	if err := q.Arm(false); err != nil {
		return err
	}
	_, err = p.PostSend([]qp.SendWR{{Opcode: qp.Send}})
	return err
}

// closer closes what has no method Close.
type closer func() error

func (f closer) Close() error { return f() }

// memory uses what a domain can do with memory; what it gives is to be closed.
func memory(pd verbs.PD, r *mr.Region, buf []byte) (open []interface{ Close() error }, err error) {
	m, err := verbs.MemoryOf(pd)
	if err != nil {
		return nil, err
	}
	for _, buf := range [][]byte{nil, buf} {
		next, err := m.Reregister(*r, buf, 0)
		if err != nil {
			return nil, err
		}
		*r = next
	}
	if err := m.Advise(mr.Prefetch, true, []qp.SGE{{Addr: r.Addr, Length: 1, LKey: r.LKey}}); err != nil {
		return nil, err
	}
	d, err := m.RegisterDMABuf(verbs.DMABuf{FD: 0, Length: 4096, Addr: 4096}, 0)
	if err != nil {
		return nil, err
	}
	open = append(open, closer(func() error { return pd.Deregister(d) }))
	w, err := m.AllocWindow()
	if err != nil {
		return open, err
	}
	return append(open, closer(func() error { return m.FreeWindow(w) })), nil
}

// Each request of a device's life fails in turn: the error is typed, nothing is
// left, neither here nor in the kernel, whatever was made before, and what could not
// be destroyed can be, later.
func TestEveryRequestFails(t *testing.T) {
	all := newFake(t)
	if err := life(all.device()); err != nil {
		t.Fatal(err)
	}
	destroys := map[string]bool{"destroy queue pair": true, "destroy shared receive queue": true, "destroy completion queue": true, "deallocate protection domain": true, "deregister memory region": true, "free memory window": true}
	for _, errno := range []syscall.Errno{
		unix.EIO, unix.ENOMEM, unix.EPERM, unix.EINVAL, unix.ENODEV, unix.EAGAIN, unix.EBUSY, unix.EFAULT, unix.ENOSPC, unix.EOPNOTSUPP,
	} {
		for n := range all.requests {
			k := newFake(t)
			fds, maps := openFDs(t), mmio.Live()
			var failed string
			k.fail = func(i int, c *uverbs.Call) syscall.Errno {
				if i == n {
					failed = c.Op
					return errno
				}
				return 0
			}
			err := life(k.device())
			if errno == unix.EIO && destroys[failed] {
				if err != nil { // the device is gone, and with it what was to be destroyed
					t.Errorf("%s: %v: %v", failed, errno, err)
				}
			} else if op := (*verbs.OpError)(nil); !errors.Is(err, errno) || !errors.As(err, &op) || op.Device != "rxe7" || op.Remedy == "" {
				t.Errorf("%s: %v: error %v", failed, errno, err)
			}
			if f, m := openFDs(t)-len(k.events), mmio.Live(); f != fds || m != maps {
				t.Errorf("%s: %v: %d descriptors and %d mappings left", failed, errno, f-fds, m-maps)
			}
			if len(k.objects) > 0 && errno != unix.EIO {
				t.Errorf("%s: %v: left in the kernel: %v", failed, errno, k.objects)
			}
		}
	}
	t.Logf("%d requests in a life", all.requests)
}

// A driver whose queues make no sense is refused.
func TestBadQueueHeaders(t *testing.T) {
	for kind, want := range map[string]string{
		"cq": "map completion queue", "sq": "map send queue", "rq": "map receive queue", "srq": "map shared receive queue",
	} {
		k := newFake(t)
		fds, maps := openFDs(t), mmio.Live()
		k.bad = kind
		var op *verbs.OpError
		if err := life(k.device()); !errors.As(err, &op) || op.Op != want {
			t.Errorf("error %v, want of %q", err, want)
		}
		if f, m := openFDs(t)-len(k.events), mmio.Live(); f != fds || m != maps {
			t.Errorf("%s: %d descriptors and %d mappings left", kind, f-fds, m-maps)
		}
	}
}

// stand makes a context, domain, queue and queue pair on the fake, closed at the end.
func stand(t *testing.T, k *fakeKernel) (*devContext, verbs.PD, *completionQueue, *queuePair) {
	t.Helper()
	ctx, err := k.device().Open()
	must(t, err)
	closeLater(t, ctx)
	pd, err := ctx.AllocPD()
	must(t, err)
	closeLater(t, pd)
	q, err := ctx.CreateCQ(verbs.CQConfig{Entries: 8})
	must(t, err)
	closeLater(t, q)
	p, err := pd.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: fakeCaps})
	must(t, err)
	closeLater(t, p)
	return ctx.(*devContext), pd, q.(*completionQueue), p.(*queuePair)
}

// The capacities are the rings', not what the kernel's answer says.
func TestCapacities(t *testing.T) {
	_, _, q, p := stand(t, newFake(t))
	want := qp.Caps{SendWR: fakeMask, RecvWR: fakeMask, SendSGE: 2, RecvSGE: 2, Inline: 64}
	if p.Caps() != want || q.Capacity() != fakeMask {
		t.Errorf("capacities %+v and %d, want %+v and %d", p.Caps(), q.Capacity(), want, fakeMask)
	}
}

// An error completion moves the queue pair to ERR and makes the kernel look again.
func TestErrorCompletion(t *testing.T) {
	k := newFake(t)
	_, _, q, p := stand(t, k)
	must(t, (&qp.Path{MTU: qp.MTU1024}).Connect(p))
	var again int
	k.fail = func(_ int, c *uverbs.Call) syscall.Errno {
		if c.Op == "modify queue pair" {
			again++
		}
		return 0
	}
	k.complete(cq.Completion{ID: 1, QPNum: 17}, cq.Completion{ID: 2, QPNum: 17, Status: cq.WRFlushError}, cq.Completion{ID: 3, QPNum: 17, Status: cq.WRFlushError})
	var buf [4]cq.Completion
	if n, err := q.Poll(buf[:1]); n != 1 || err != nil || p.State() != qp.RTS {
		t.Fatalf("%d completions, %v, state %v", n, err, p.State())
	}
	if n, err := q.Poll(buf[:]); n != 2 || err != nil || p.State() != qp.Err || buf[0].ID != 2 || buf[1].ID != 3 {
		t.Fatalf("%d completions %+v, %v, state %v", n, buf, err, p.State())
	}
	if again != 1 {
		t.Errorf("the queue pair was moved to ERR %d times, want once", again)
	}
	if n, err := p.PostRecv([]qp.RecvWR{{ID: 4}}); n != 1 || err != nil || again != 2 {
		t.Errorf("receive in ERR: %d, %v; moved to ERR %d times, want twice", n, err, again)
	}
}

// A failure that is told of while the queue pair is being moved is not overwritten, but
// by RESET, which the flush that belongs to the failure does not undo.
func TestFailureWhileMoved(t *testing.T) {
	for _, tt := range []struct {
		to   qp.Attr
		mask qp.AttrMask
		want qp.State
	}{
		{qp.Attr{State: qp.RTS, RNRTimer: 3}, qp.MaskState | qp.MaskRNRTimer, qp.Err},
		{qp.Attr{State: qp.SQD}, qp.MaskState, qp.Err},
		{qp.Attr{State: qp.Reset}, qp.MaskState, qp.Reset},
	} {
		k := newFake(t)
		_, _, _, p := stand(t, k)
		must(t, (&qp.Path{MTU: qp.MTU1024}).Connect(p))
		told, moves := make(chan struct{}), 0
		k.fail = func(_ int, c *uverbs.Call) syscall.Errno {
			if c.Op != "modify queue pair" {
				return 0
			}
			if moves++; moves == 1 {
				go func() { p.Failed(); close(told) }()
				for p.State() != qp.Err {
					runtime.Gosched()
				}
			}
			return 0
		}
		must(t, p.Modify(&tt.to, tt.mask))
		<-told
		if p.State() != tt.want || moves != map[qp.State]int{qp.Err: 2, qp.Reset: 1}[tt.want] {
			t.Errorf("mask %v, to %v: state %v, %d moves", tt.mask, tt.to.State, p.State(), moves)
		}
	}
}

func TestAsyncEvents(t *testing.T) {
	k := newFake(t)
	ctx, _, q, p := stand(t, k)
	must(t, (&qp.Path{MTU: qp.MTU1024}).Connect(p))
	next := func() verbs.Event {
		t.Helper()
		e, err := ctx.NextEvent(context.Background())
		must(t, err)
		return e
	}
	k.event(1, verbs.EventPortError)
	if e := next(); e != (verbs.Event{Type: verbs.EventPortError, Port: 1}) {
		t.Errorf("event %+v", e)
	}
	k.event(p.User, verbs.EventQPAccessError)
	if e := next(); e.QP != 17 || p.State() != qp.Err {
		t.Errorf("event %+v, state %v", e, p.State())
	}
	k.event(q.User, verbs.EventCQError)
	if e := next(); e.CQ != q {
		t.Errorf("event %+v", e)
	}
	k.complete(cq.Completion{ID: 1, QPNum: 17})
	var buf [4]cq.Completion
	if n, err := q.Poll(buf[:]); n != 1 || err != nil {
		t.Errorf("what came before the overflow: %d, %v", n, err)
	}
	if _, err := q.Poll(buf[:]); err != cq.ErrOverflow {
		t.Errorf("overflow: %v", err)
	}
	must(t, q.Wait(context.Background())) // woken to see it
	k.event(999, verbs.EventQPFatal)      // of an object that is gone
	if e := next(); e.QP != 0 || e.CQ != nil {
		t.Errorf("event %+v", e)
	}
}

// Destroying waits until every event that the kernel handed out was processed.
func TestEventsReported(t *testing.T) {
	k := newFake(t)
	_, _, _, p := stand(t, k)
	k.reported = 2
	k.event(p.User, verbs.EventQPAccessError)
	done := make(chan error, 1)
	go func() { done <- p.Close() }()
	for !p.Closed() { // destroyed in the kernel
		select {
		case err := <-done:
			t.Fatalf("closed with an event outstanding: %v", err)
		default:
		}
	}
	select {
	case err := <-done:
		t.Fatalf("closed with an event outstanding: %v", err)
	default:
	}
	k.event(p.User, verbs.EventCommEstablished)
	must(t, <-done)
}

// When the device is gone everybody hears of it, and everything can be closed.
func TestDeviceLost(t *testing.T) {
	noLeaks(t)
	k := newFake(t)
	ctx, pd, q, p := stand(t, k)
	must(t, (&qp.Path{MTU: qp.MTU1024}).Connect(p))
	waited := make(chan error, 1)
	go func() { waited <- q.Wait(context.Background()) }()
	k.mu.Lock()
	k.fail = func(int, *uverbs.Call) syscall.Errno { return unix.EIO }
	k.mu.Unlock()
	k.events[0].Close()
	must(t, <-waited)
	if _, err := ctx.NextEvent(context.Background()); !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("event: %v", err)
	}
	var buf [1]cq.Completion
	if _, err := q.Poll(buf[:]); err != verbs.ErrDeviceLost {
		t.Errorf("poll: %v", err)
	}
	if _, err := ctx.AllocPD(); !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("new domain: %v", err)
	}
	if _, err := ctx.Attr(); !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("limits: %v", err)
	}
	if p.State() != qp.Err {
		t.Errorf("state %v", p.State())
	}
	for _, c := range []interface{ Close() error }{p, q, pd, ctx} {
		must(t, c.Close())
	}
}

func TestForeignQueues(t *testing.T) {
	_, _, q, _ := stand(t, newFake(t))
	_, pd, _, _ := stand(t, newFake(t))
	if _, err := pd.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: fakeCaps}); err == nil {
		t.Error("a queue of another context was taken")
	}
}
