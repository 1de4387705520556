//go:build linux

package kdevtest

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// BadRKey: a bad rkey fails the request with the peer's reason, takes both queue
// pairs to ERR, and flushes what the peer had posted.
func (r *Rig) BadRKey(t *testing.T) {
	testdev.Verb(t, "QP: requester hears of a refusal")
	r.without(t, testdev.LostErrors)
	p := r.Connect(t, Config{})
	p.B.Recv(t, 1, p.B.SGE(0, 64))
	p.A.Send(t, qp.SendWR{ID: 9, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 64)}, RemoteAddr: p.B.MR.Addr, RKey: p.B.MR.RKey ^ 0x5a5a5a})
	p.A.Want(t, cq.Completion{ID: 9, Status: cq.RemoteAccessError})
	if s := p.A.QP.State(); s != qp.Err {
		t.Errorf("requester's state is %v", s)
	}
	p.B.Want(t, cq.Completion{ID: 1, Status: cq.WRFlushError})
	if s := p.B.QP.State(); s != qp.Err {
		t.Errorf("responder's state is %v", s)
	}
	p.A.Send(t, qp.SendWR{ID: 10, Opcode: qp.Send, SGEs: []qp.SGE{p.A.SGE(0, 64)}}) // not signaled: a failure is reported all the same
	p.A.Want(t, cq.Completion{ID: 10, Status: cq.WRFlushError})
}

// OutOfBounds writes past a region by one byte, at either end.
func (r *Rig) OutOfBounds(t *testing.T) {
	testdev.Verb(t, "QP: requester hears of a refusal")
	r.without(t, testdev.LostErrors)
	for _, off := range []int64{-1, 64<<10 - 63} {
		p := r.Connect(t, Config{})
		p.A.Send(t, qp.SendWR{ID: 9, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 64)}, RemoteAddr: p.B.MR.Addr + uint64(off), RKey: p.B.MR.RKey})
		p.A.Want(t, cq.Completion{ID: 9, Status: cq.RemoteAccessError})
	}
}

// BadLKey: a bad lkey fails the request.
func (r *Rig) BadLKey(t *testing.T) {
	testdev.Verb(t, "QP: local protection error")
	p := r.Connect(t, Config{})
	bad := p.A.SGE(0, 64)
	bad.LKey ^= 0x5a5a5a
	p.A.Send(t, qp.SendWR{ID: 9, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{bad}})
	r.wantStatus(t, &p.A, 9, cq.LocalProtectionError)
}

// ReceiveTooSmall: a message that does not fit its receive fails both.
func (r *Rig) ReceiveTooSmall(t *testing.T) {
	testdev.Verb(t, "QP: length error")
	p := r.Connect(t, Config{})
	p.B.Recv(t, 1, p.B.SGE(0, 32))
	p.A.Send(t, qp.SendWR{ID: 9, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 64)}})
	r.wantStatus(t, &p.A, 9, cq.RemoteInvalidRequestError)
	r.wantStatus(t, &p.B, 1, cq.LocalLengthError)
}

// RNRRetryExceeded: no receive is there, and retries are not asked for.
func (r *Rig) RNRRetryExceeded(t *testing.T) {
	testdev.Verb(t, "QP: end of RNR retries")
	p := r.Connect(t, Config{Path: func(p *qp.Path) { p.NoRNRRetry, p.RNRTimer = true, 1 }})
	p.A.Send(t, qp.SendWR{ID: 9, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 64)}})
	p.A.Want(t, cq.Completion{ID: 9, Status: cq.RNRRetryExceededError})
}

// RetryExceeded: the peer is gone, and the retries end with an error.
func (r *Rig) RetryExceeded(t *testing.T) {
	testdev.Verb(t, "QP: end of retries")
	p := r.Connect(t, Config{Path: func(p *qp.Path) { p.AckTimeout, p.RetryCount = 8, 1 }})
	Must(t, p.B.QP.Close())
	p.A.Send(t, qp.SendWR{ID: 9, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 64)}})
	p.A.Want(t, cq.Completion{ID: 9, Status: cq.RetryExceededError})
}

// Flush: moving to ERR flushes every posted receive, in order, and receives posted
// after that complete as flushed too.
func (r *Rig) Flush(t *testing.T) {
	testdev.Verb(t, "QP: flush in ERR")
	p := r.Connect(t, Config{})
	for id := range uint64(5) {
		p.B.Recv(t, id, p.B.SGE(0, 8))
	}
	Must(t, p.B.QP.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	for id := range uint64(5) {
		p.B.Want(t, cq.Completion{ID: id, Status: cq.WRFlushError})
	}
	for id := uint64(5); id < 8; id++ {
		p.B.Recv(t, id, p.B.SGE(0, 8))
		p.B.Want(t, cq.Completion{ID: id, Status: cq.WRFlushError})
	}
	p.B.Empty(t)
}

// ResetAndReuse: a queue pair can be used again after RESET, with nothing left over.
func (r *Rig) ResetAndReuse(t *testing.T) {
	testdev.Verb(t, "QP: reset")
	p := r.Connect(t, Config{})
	for id := range uint64(3) {
		p.B.Recv(t, id, p.B.SGE(0, 8))
	}
	for _, e := range []*End{&p.A, &p.B} {
		Must(t, e.QP.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
		if n, err := e.QP.PostRecv([]qp.RecvWR{{}}); n != 0 || err != qp.ErrState {
			t.Errorf("receive in RESET: %d, %v", n, err)
		}
	}
	var buf [8]cq.Completion
	_, err := p.B.CQ.Poll(buf[:]) // of the receives, if the kernel flushed them
	Must(t, err)
	p.Join(t, nil)
	p.B.Recv(t, 7, p.B.SGE(0, 8))
	p.A.Send(t, qp.SendWR{ID: 8, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}})
	p.A.Want(t, cq.Completion{ID: 8, Opcode: cq.Send})
	p.B.Want(t, cq.Completion{ID: 7, Opcode: cq.Recv, ByteLen: 8})
}

// Overflow: a completion queue that is too small ends in ErrOverflow and an event,
// not in silence.
func (r *Rig) Overflow(t *testing.T) {
	testdev.Verb(t, "CQ: overflow", "device: event of a CQ")
	p := r.Connect(t, Config{Caps: qp.Caps{SendWR: 64, RecvWR: 64, SendSGE: 1, RecvSGE: 1}})
	q, err := p.Ctx.CreateCQ(verbs.CQConfig{Entries: 1})
	Must(t, err)
	CloseLater(t, q)
	small := End{CQ: q, Mem: p.A.Mem, MR: p.A.MR}
	small.QP, err = p.PD.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: qp.Caps{SendWR: 64, RecvWR: 1, SendSGE: 1, RecvSGE: 1}})
	Must(t, err)
	CloseLater(t, small.QP)
	Must(t, p.B.QP.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	old := p.A
	p.A = small
	p.Join(t, nil)
	p.A = old
	n := q.Capacity() + 3
	for i := range n {
		small.Send(t, qp.SendWR{ID: uint64(i), Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{small.SGE(0, 8)}, RemoteAddr: p.B.MR.Addr, RKey: p.B.MR.RKey})
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		e, err := p.Ctx.NextEvent(ctx)
		Must(t, err)
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

// CloseOrder: objects in use cannot be closed; the error wraps EBUSY and changes
// nothing.
func (r *Rig) CloseOrder(t *testing.T) {
	testdev.Verb(t, "device: objects in use stay")
	p := r.Connect(t, Config{})
	for name, c := range map[string]interface{ Close() error }{"context": p.Ctx, "PD": p.PD, "CQ": p.A.CQ} {
		if err := c.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("closing the %s in use: %v", name, err)
		}
	}
	p.B.Recv(t, 7, p.B.SGE(0, 8))
	p.A.Send(t, qp.SendWR{ID: 8, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}})
	p.A.Want(t, cq.Completion{ID: 8, Opcode: cq.Send})
	Must(t, p.A.QP.Close())
	if err := p.A.QP.Close(); !errors.Is(err, qp.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if n, err := p.A.QP.PostSend([]qp.SendWR{{}}); n != 0 || err != qp.ErrClosed {
		t.Errorf("send on a closed queue pair: %d, %v", n, err)
	}
}

// Registration: regions of every access at any address; what cannot be is refused.
func (r *Rig) Registration(t *testing.T) {
	testdev.Verb(t, "MR: register")
	NoLeaks(t)
	ctx, err := r.Device(t).Open()
	Must(t, err)
	CloseLater(t, ctx)
	pd, err := ctx.AllocPD()
	Must(t, err)
	CloseLater(t, pd)
	m, err := mmio.Anonymous(3 << 12)
	Must(t, err)
	CloseLater(t, m)
	for _, access := range []mr.Access{0, mr.LocalWrite, allAccess, allAccess | mr.RelaxedOrdering} {
		for _, buf := range [][]byte{m.Bytes(), m.Bytes()[:1], m.Bytes()[4095:4097], m.Bytes()[100:]} {
			r, err := pd.Register(buf, access)
			Must(t, err)
			if r.Addr != mr.Addr(buf) || r.Length != uint64(len(buf)) {
				t.Errorf("region %v of %d bytes", r, len(buf))
			}
			Must(t, pd.Deregister(r))
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

// NoEvent: waiting for an event that does not come ends with ctx, and with Close.
func (r *Rig) NoEvent(t *testing.T) {
	NoLeaks(t)
	ctx, err := r.Device(t).Open()
	Must(t, err)
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if e, err := ctx.NextEvent(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("event %v, %v", e, err)
	}
	done := make(chan error, 1)
	go func() { _, err := ctx.NextEvent(context.Background()); done <- err }()
	Must(t, ctx.Close())
	if err := <-done; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("event of a closed context: %v", err)
	}
	if err := ctx.Close(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

// RefusedCreation: what is beyond the limits is refused, and nothing is left of it.
func (r *Rig) RefusedCreation(t *testing.T) {
	p := r.Connect(t, Config{})
	attr, err := p.Ctx.Attr()
	Must(t, err)
	caps := qp.Caps{SendWR: attr.MaxQPWR + 1, RecvWR: 1, SendSGE: 1, RecvSGE: 1}
	if _, err := p.PD.CreateQP(verbs.QPConfig{SendCQ: p.A.CQ, RecvCQ: p.A.CQ, Caps: caps}); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("too many requests: %v", err)
	}
	r.Refused(t, p)
	if _, err := p.Ctx.CreateCQ(verbs.CQConfig{Entries: attr.MaxCQE + 1}); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("too many entries: %v", err)
	}
}

// wantStatus takes the next completion, which must be of the request and have the
// status, or one that the device gives in its place.
func (r *Rig) wantStatus(t *testing.T, e *End, id uint64, want cq.Status) {
	t.Helper()
	if c := e.Next(t); c.ID != id || c.Status != want && !slices.Contains(r.Also[want], c.Status) {
		t.Errorf("completion %+v, want status %v or one of %v", c, want, r.Also[want])
	}
	if s := e.QP.State(); s != qp.Err {
		t.Errorf("state is %v", s)
	}
}
