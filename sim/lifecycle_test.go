package sim_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// TestObjectsAndLimits: what cannot be made, and in which order things close.
func TestObjectsAndLimits(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	d := must[*sim.Device](t)(f.NewDevice("nic", sim.DeviceConfig{Limits: verbs.DeviceAttr{MaxQP: 2, MaxPD: 2, MaxCQ: 3, MaxQPWR: 100, MaxCQE: 1000}}))
	ctx, other := must[verbs.Context](t)(d.Open()), must[verbs.Context](t)(d.Open())
	pd, foreignPD := must[verbs.PD](t)(ctx.AllocPD()), must[verbs.PD](t)(other.AllocPD())
	q1, foreign := must[cq.CQ](t)(ctx.CreateCQ(verbs.CQConfig{Entries: 1000})), must[cq.CQ](t)(other.CreateCQ(verbs.CQConfig{Entries: 3}))
	q2 := must[cq.CQ](t)(ctx.CreateCQ(verbs.CQConfig{Entries: 1}))
	if q1.Capacity() < 1000 || q2.Capacity() < 1 {
		t.Errorf("capacities %d, %d", q1.Capacity(), q2.Capacity())
	}
	caps := qp.Caps{SendWR: 10, RecvWR: 10, SendSGE: 1, RecvSGE: 1}
	_, pdErr := ctx.AllocPD()
	_, cqErr := ctx.CreateCQ(verbs.CQConfig{Entries: 1})
	_, cqeErr := ctx.CreateCQ(verbs.CQConfig{Entries: 1001})
	_, vectorErr := ctx.CreateCQ(verbs.CQConfig{Entries: 1, Vector: 1000})
	_, wrErr := pd.CreateQP(verbs.QPConfig{SendCQ: q1, RecvCQ: q1, Caps: qp.Caps{SendWR: 101}})
	_, inlineErr := pd.CreateQP(verbs.QPConfig{SendCQ: q1, RecvCQ: q1, Caps: qp.Caps{Inline: 513}})
	_, noneErr := pd.CreateQP(verbs.QPConfig{SendCQ: q1, Caps: caps})
	for i, err := range []error{pdErr, cqErr, cqeErr, vectorErr, wrErr, inlineErr, noneErr} {
		if !errors.Is(err, verbs.ErrLimit) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := pd.CreateQP(verbs.QPConfig{SendCQ: foreign, RecvCQ: q1, Caps: caps}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("CQ of another context: %v", err)
	}
	a := must[qp.QP](t)(pd.CreateQP(verbs.QPConfig{SendCQ: q1, RecvCQ: q2, Caps: caps}))
	b := must[qp.QP](t)(pd.CreateQP(verbs.QPConfig{SendCQ: q2, RecvCQ: q2, Caps: caps}))
	if a.Num() == b.Num() || a.Num() > 0xffffff {
		t.Errorf("numbers %#x, %#x", a.Num(), b.Num())
	}
	if _, err := pd.CreateQP(verbs.QPConfig{SendCQ: q1, RecvCQ: q2, Caps: caps}); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("third queue pair of two: %v", err)
	}
	if _, err := ctx.Port(2); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("port 2 of 1: %v", err)
	}
	for what, err := range map[string]error{"CQ": q2.Close(), "PD": pd.Close(), "context": ctx.Close()} {
		if !errors.Is(err, syscall.EBUSY) {
			t.Errorf("close of a used %s: %v", what, err)
		}
	}
	done := make(chan error)
	go func() {
		_, err := ctx.NextEvent(context.Background())
		done <- err
	}()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.NextEvent(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("wait for an event: %v", err)
	}
	for _, c := range []interface{ Close() error }{a, b, q1, q2, foreign, pd, foreignPD, ctx, other} {
		check(t, c.Close())
		if err := c.Close(); !errors.Is(err, verbs.ErrClosed) && !errors.Is(err, cq.ErrClosed) && !errors.Is(err, qp.ErrClosed) {
			t.Errorf("%T closed twice: %v", c, err)
		}
	}
	if err := <-done; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("wait for an event of a closed context: %v", err)
	}
	_, e1 := ctx.AllocPD()
	_, e2 := pd.CreateQP(verbs.QPConfig{SendCQ: q1, RecvCQ: q1})
	_, e3 := pd.Register(make([]byte, 8), 0)
	_, e4 := ctx.Attr()
	for i, err := range []error{e1, e2, e3, e4} {
		if !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("call %d on something closed: %v", i+1, err)
		}
	}
	if _, err := a.PostSend([]qp.SendWR{{}}); !errors.Is(err, qp.ErrClosed) {
		t.Errorf("post to a closed queue pair: %v", err)
	}
	if d.Locked() != 0 {
		t.Errorf("%d bytes stay locked", d.Locked())
	}
	check(t, f.Close())
}

// TestOverflow: a completion queue too small for what may be outstanding is lost,
// with an event, and its queue pairs with it; nothing hangs.
func TestOverflow(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{cqe: 4})
	w := qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)}
	for range 5 {
		a.send(w)
	}
	events := a.events(2)
	if events[0].Type != verbs.EventCQError || events[0].CQ != a.cq || events[1].Type != verbs.EventQPFatal || events[1].QP != a.qp.Num() {
		t.Errorf("events %v", events)
	}
	if n, err := a.cq.Poll(a.got[:]); n != 4 || err != nil {
		t.Fatalf("poll: %d, %v", n, err)
	}
	if n, err := a.cq.Poll(a.got[:]); n != 0 || !errors.Is(err, cq.ErrOverflow) {
		t.Fatalf("poll after the overflow: %d, %v", n, err)
	}
	if err := a.cq.Arm(false); !errors.Is(err, cq.ErrOverflow) {
		t.Errorf("arm: %v", err)
	}
	if s := must[qp.Attr](t)(a.qp.Query()).State; s != qp.Err {
		t.Errorf("the queue pair is in %v", s)
	}
}

// TestCounters: a program that knows only verbs finds the counters.
func TestCounters(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{})
	a.send(qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 100)})
	a.next()
	c, ok := a.ctx.(interface{ Counters() map[string]uint64 })
	if !ok {
		t.Fatal("the context has no counters")
	}
	got := c.Counters()
	for name, want := range map[string]uint64{"Doorbells": 1, "BytesSent": 100, "Completions": 1, "PacketsSent": 1, "PacketsReceived": 1, "Retransmits": 0} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: %d, want %d", name, v, want)
		}
	}
}
