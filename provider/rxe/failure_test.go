//go:build linux

package rxe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// A bad rkey fails the request with the peer's reason, takes both queue pairs to
// ERR, and flushes what the peer had posted.
func TestBadRKey(t *testing.T) {
	skipLossyKernel(t)
	p := connect(t, pairConfig{})
	p.b.recv(t, 1, p.b.sge(0, 64))
	p.a.send(t, qp.SendWR{ID: 9, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 64)}, RemoteAddr: p.b.mr.Addr, RKey: p.b.mr.RKey ^ 0x5a5a5a})
	p.a.want(t, cq.Completion{ID: 9, Status: cq.RemoteAccessError})
	if s := p.a.qp.State(); s != qp.Err {
		t.Errorf("requester's state is %v", s)
	}
	p.b.want(t, cq.Completion{ID: 1, Status: cq.WRFlushError})
	if s := p.b.qp.State(); s != qp.Err {
		t.Errorf("responder's state is %v", s)
	}
	p.a.send(t, qp.SendWR{ID: 10, Opcode: qp.Send, SGEs: []qp.SGE{p.a.sge(0, 64)}}) // not signaled: a failure is reported all the same
	p.a.want(t, cq.Completion{ID: 10, Status: cq.WRFlushError})
}

// Out of bounds, by one byte, at either end.
func TestOutOfBounds(t *testing.T) {
	skipLossyKernel(t)
	for _, off := range []int64{-1, 64<<10 - 63} {
		p := connect(t, pairConfig{})
		p.a.send(t, qp.SendWR{ID: 9, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 64)}, RemoteAddr: p.b.mr.Addr + uint64(off), RKey: p.b.mr.RKey})
		p.a.want(t, cq.Completion{ID: 9, Status: cq.RemoteAccessError})
	}
}

func TestBadLKey(t *testing.T) {
	p := connect(t, pairConfig{})
	bad := p.a.sge(0, 64)
	bad.LKey ^= 0x5a5a5a
	p.a.send(t, qp.SendWR{ID: 9, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{bad}})
	// Kernel 6.1 gives the second, 6.12 loses the cause and gives the third.
	wantStatus(t, &p.a, 9, cq.LocalProtectionError, cq.LocalQPOperationError, cq.WRFlushError)
}

func TestReceiveTooSmall(t *testing.T) {
	p := connect(t, pairConfig{})
	p.b.recv(t, 1, p.b.sge(0, 32))
	p.a.send(t, qp.SendWR{ID: 9, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 64)}})
	wantStatus(t, &p.a, 9, cq.RemoteInvalidRequestError, cq.RemoteOperationError) // kernel 6.1 gives the second
	wantStatus(t, &p.b, 1, cq.LocalLengthError, cq.LocalQPOperationError)
}

func TestRNRRetryExceeded(t *testing.T) {
	p := connect(t, pairConfig{path: func(p *qp.Path) { p.NoRNRRetry, p.RNRTimer = true, 1 }})
	p.a.send(t, qp.SendWR{ID: 9, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 64)}})
	p.a.want(t, cq.Completion{ID: 9, Status: cq.RNRRetryExceededError})
}

// The peer is gone: the retries end with an error.
func TestRetryExceeded(t *testing.T) {
	p := connect(t, pairConfig{path: func(p *qp.Path) { p.AckTimeout, p.RetryCount = 8, 1 }})
	must(t, p.b.qp.Close())
	p.a.send(t, qp.SendWR{ID: 9, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 64)}})
	p.a.want(t, cq.Completion{ID: 9, Status: cq.RetryExceededError})
}

// Moving to ERR flushes every posted receive, in order, and receives posted after
// that complete as flushed too.
func TestFlush(t *testing.T) {
	p := connect(t, pairConfig{})
	for id := range uint64(5) {
		p.b.recv(t, id, p.b.sge(0, 8))
	}
	must(t, p.b.qp.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	for id := range uint64(5) {
		p.b.want(t, cq.Completion{ID: id, Status: cq.WRFlushError})
	}
	for id := uint64(5); id < 8; id++ {
		p.b.recv(t, id, p.b.sge(0, 8))
		p.b.want(t, cq.Completion{ID: id, Status: cq.WRFlushError})
	}
	p.b.empty(t)
}

// The kernel moved the queue pair to ERR unknown to software, and a receive is
// posted then: the first error completion makes it flushed as well.
func TestFlushOfReceivePostedUnaware(t *testing.T) {
	skipLossyKernel(t)
	p := connect(t, pairConfig{})
	q := p.b.qp.(*queuePair)
	must(t, q.pd.ctx.K.ModifyQP(q.h, &qp.Attr{State: qp.Err}, qp.MaskState)) // behind its back
	if q.State() != qp.RTS {
		t.Fatal("software knows")
	}
	p.b.recv(t, 1, p.b.sge(0, 8))
	p.b.send(t, qp.SendWR{ID: 2, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.b.sge(0, 8)}})
	seen := map[uint64]bool{}
	for range 2 {
		c := p.b.next(t)
		if c.Status != cq.WRFlushError || seen[c.ID] {
			t.Errorf("completion %+v", c)
		}
		seen[c.ID] = true
	}
	if q.State() != qp.Err {
		t.Errorf("state is %v", q.State())
	}
}

// A queue pair that failed can be used again after RESET, with nothing left over.
func TestResetAndReuse(t *testing.T) {
	p := connect(t, pairConfig{})
	for id := range uint64(3) {
		p.b.recv(t, id, p.b.sge(0, 8))
	}
	for _, e := range []*end{&p.a, &p.b} {
		must(t, e.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
		if n, err := e.qp.PostRecv([]qp.RecvWR{{}}); n != 0 || err != qp.ErrState {
			t.Errorf("receive in RESET: %d, %v", n, err)
		}
	}
	var buf [8]cq.Completion
	_, err := p.b.cq.Poll(buf[:]) // of the receives, if the kernel flushed them
	must(t, err)
	p.join(t, nil)
	p.b.recv(t, 7, p.b.sge(0, 8))
	p.a.send(t, qp.SendWR{ID: 8, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 8)}})
	p.a.want(t, cq.Completion{ID: 8, Opcode: cq.Send})
	p.b.want(t, cq.Completion{ID: 7, Opcode: cq.Recv, ByteLen: 8})
}

// A completion queue that is too small ends in ErrOverflow and an event, not in
// silence.
func TestOverflow(t *testing.T) {
	p := connect(t, pairConfig{caps: qp.Caps{SendWR: 64, RecvWR: 64, SendSGE: 1, RecvSGE: 1}})
	q, err := p.ctx.CreateCQ(verbs.CQConfig{Entries: 1})
	must(t, err)
	closeLater(t, q)
	small := end{cq: q, mem: p.a.mem, mr: p.a.mr}
	small.qp, err = p.pd.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: qp.Caps{SendWR: 64, RecvWR: 1, SendSGE: 1, RecvSGE: 1}})
	must(t, err)
	closeLater(t, small.qp)
	must(t, p.b.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	old := p.a
	p.a = small
	p.join(t, nil)
	p.a = old
	n := q.Capacity() + 3
	for i := range n {
		small.send(t, qp.SendWR{ID: uint64(i), Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{small.sge(0, 8)}, RemoteAddr: p.b.mr.Addr, RKey: p.b.mr.RKey})
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		e, err := p.ctx.NextEvent(ctx)
		must(t, err)
		if e.Type == verbs.EventCQError {
			if e.CQ != q {
				t.Errorf("event %v names another queue", e)
			}
			break
		}
	}
	var buf [4]cq.Completion
	for {
		n, err := q.Poll(buf[:])
		if err == cq.ErrOverflow {
			break
		}
		if n == 0 || err != nil {
			t.Fatalf("%d completions, %v; want overflow after the last", n, err)
		}
	}
}

// Objects in use cannot be closed; the error wraps EBUSY and changes nothing.
func TestCloseOrder(t *testing.T) {
	p := connect(t, pairConfig{})
	for name, c := range map[string]interface{ Close() error }{"context": p.ctx, "PD": p.pd, "CQ": p.a.cq} {
		if err := c.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("closing the %s in use: %v", name, err)
		}
	}
	p.b.recv(t, 7, p.b.sge(0, 8))
	p.a.send(t, qp.SendWR{ID: 8, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 8)}})
	p.a.want(t, cq.Completion{ID: 8, Opcode: cq.Send})
	must(t, p.a.qp.Close())
	if err := p.a.qp.Close(); !errors.Is(err, qp.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if n, err := p.a.qp.PostSend([]qp.SendWR{{}}); n != 0 || err != qp.ErrClosed {
		t.Errorf("send on a closed queue pair: %d, %v", n, err)
	}
}

func TestRegistration(t *testing.T) {
	noLeaks(t)
	ctx, err := device(t).Open()
	must(t, err)
	closeLater(t, ctx)
	pd, err := ctx.AllocPD()
	must(t, err)
	closeLater(t, pd)
	m, err := mmio.Anonymous(3 << 12)
	must(t, err)
	closeLater(t, m)
	for _, access := range []mr.Access{0, mr.LocalWrite, allAccess, allAccess | mr.RelaxedOrdering} {
		for _, buf := range [][]byte{m.Bytes(), m.Bytes()[:1], m.Bytes()[4095:4097], m.Bytes()[100:]} {
			r, err := pd.Register(buf, access)
			must(t, err)
			if r.Addr != mr.Addr(buf) || r.Length != uint64(len(buf)) {
				t.Errorf("region %v of %d bytes", r, len(buf))
			}
			must(t, pd.Deregister(r))
			if err := pd.Deregister(r); !errors.Is(err, verbs.ErrClosed) {
				t.Errorf("deregistered twice: %v", err)
			}
		}
	}
	if _, err := pd.Register(m.Bytes(), mr.RemoteWrite); !errors.Is(err, mr.ErrAccess) {
		t.Errorf("remote write without local write: %v", err)
	}
	if _, err := pd.Register(nil, 0); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("no memory: %v", err)
	}
}

// Waiting for an event that does not come ends with ctx, and with Close.
func TestNoEvent(t *testing.T) {
	noLeaks(t)
	ctx, err := device(t).Open()
	must(t, err)
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if e, err := ctx.NextEvent(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("event %v, %v", e, err)
	}
	done := make(chan error, 1)
	go func() { _, err := ctx.NextEvent(context.Background()); done <- err }()
	must(t, ctx.Close())
	if err := <-done; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("event of a closed context: %v", err)
	}
	if err := ctx.Close(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

// Two queue pairs whose creation fails half-way leave nothing: the kernel refuses
// absurd capacities.
func TestRefusedCreation(t *testing.T) {
	p := connect(t, pairConfig{})
	attr, err := p.ctx.Attr()
	must(t, err)
	caps := qp.Caps{SendWR: attr.MaxQPWR + 1, RecvWR: 1, SendSGE: 1, RecvSGE: 1}
	if _, err := p.pd.CreateQP(verbs.QPConfig{SendCQ: p.a.cq, RecvCQ: p.a.cq, Caps: caps}); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("too many requests: %v", err)
	}
	caps = qp.Caps{SendWR: 1, RecvWR: 1, SendSGE: 1, RecvSGE: 1, Inline: 1 << 15} // the limit is not told
	var op *verbs.OpError
	if _, err := p.pd.CreateQP(verbs.QPConfig{SendCQ: p.a.cq, RecvCQ: p.a.cq, Caps: caps}); !errors.Is(err, syscall.EINVAL) || !errors.As(err, &op) || op.Remedy == "" {
		t.Errorf("too much inline: %v", err)
	}
	if _, err := p.ctx.CreateCQ(verbs.CQConfig{Entries: attr.MaxCQE + 1}); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("too many entries: %v", err)
	}
}

// wantStatus takes the next completion, which must be of the request and have one
// of the statuses: kernels differ in some.
func wantStatus(t *testing.T, e *end, id uint64, any ...cq.Status) {
	t.Helper()
	if c := e.next(t); c.ID != id || !slices.Contains(any, c.Status) {
		t.Errorf("completion %+v, want status of %v", c, any)
	}
	if s := e.qp.State(); s != qp.Err {
		t.Errorf("state is %v after an error", s)
	}
}

// skipLossyKernel skips a test on kernel 5.10, whose rxe driver neither reports a
// peer's refusal to the requester nor flushes sends that are posted in ERR.
func skipLossyKernel(t *testing.T) {
	t.Helper()
	var u unix.Utsname
	must(t, unix.Uname(&u))
	if release := unix.ByteSliceToString(u.Release[:]); strings.HasPrefix(release, "5.10.") {
		t.Skipf("the rxe driver of kernel %s loses error completions", release)
	}
}
