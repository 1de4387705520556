// Package testfault has RDMA devices that fail at a step of their set-up, or whose process
// stops, for tests.
package testfault

import (
	"sync/atomic"
	"syscall"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Step is a step of a set-up over RDMA.
type Step int32

// Steps.
const (
	None Step = iota
	Open
	PD
	MR
	CQ
	Arm
	QP
	Init
	RTR
	RTS
	Send
)

// Device opens a device that fails at one step, which may change at any time. Any
// goroutine may call its methods.
type Device struct {
	open   atomic.Pointer[func() (verbs.Context, error)]
	at     atomic.Int32
	fails  atomic.Int64
	frozen atomic.Pointer[chan struct{}] // closed when it goes on; nil: it runs
}

// New makes a device that has no fault yet.
func New(open func() (verbs.Context, error)) *Device {
	d := &Device{}
	d.Replace(open)
	return d
}

// Replace puts another device in its place, for the next Open.
func (d *Device) Replace(open func() (verbs.Context, error)) { d.open.Store(&open) }

// Fail makes a step fail with EIO from now on; None: no longer.
func (d *Device) Fail(s Step) { d.at.Store(int32(s)) }

// Fails is how often a step has failed.
func (d *Device) Fails() int64 { return d.fails.Load() }

// Freeze stops whoever polls the device's completions, as SIGSTOP would, while the
// device goes on; with false it goes on too.
func (d *Device) Freeze(freeze bool) {
	if !freeze {
		if c := d.frozen.Swap(nil); c != nil {
			close(*c)
		}
		return
	}
	c := make(chan struct{})
	d.frozen.CompareAndSwap(nil, &c)
}

func (d *Device) fail(s Step) error {
	if Step(d.at.Load()) != s {
		return nil
	}
	d.fails.Add(1)
	return syscall.EIO
}

// Open opens the device.
func (d *Device) Open() (verbs.Context, error) {
	if err := d.fail(Open); err != nil {
		return nil, err
	}
	ctx, err := (*d.open.Load())()
	return faultyContext{ctx, d}, err
}

type faultyContext struct {
	verbs.Context
	d *Device
}

func (c faultyContext) AllocPD() (verbs.PD, error) {
	if err := c.d.fail(PD); err != nil {
		return nil, err
	}
	pd, err := c.Context.AllocPD()
	return faultyPD{pd, c.d}, err
}

func (c faultyContext) CreateCQ(cfg verbs.CQConfig) (cq.CQ, error) {
	if err := c.d.fail(CQ); err != nil {
		return nil, err
	}
	q, err := c.Context.CreateCQ(cfg)
	return faultyCQ{q, c.d}, err
}

type faultyCQ struct {
	cq.CQ
	d *Device
}

func (q faultyCQ) Arm(solicited bool) error {
	if err := q.d.fail(Arm); err != nil {
		return err
	}
	return q.CQ.Arm(solicited)
}

func (q faultyCQ) Poll(dst []cq.Completion) (int, error) {
	if c := q.d.frozen.Load(); c != nil {
		<-*c
	}
	return q.CQ.Poll(dst)
}

type faultyPD struct {
	verbs.PD
	d *Device
}

func (p faultyPD) Register(b []byte, a mr.Access) (mr.Region, error) {
	if err := p.d.fail(MR); err != nil {
		return mr.Region{}, err
	}
	return p.PD.Register(b, a)
}

func (p faultyPD) CreateQP(cfg verbs.QPConfig) (qp.QP, error) {
	if err := p.d.fail(QP); err != nil {
		return nil, err
	}
	cfg.SendCQ, cfg.RecvCQ = cfg.SendCQ.(faultyCQ).CQ, cfg.RecvCQ.(faultyCQ).CQ
	q, err := p.PD.CreateQP(cfg)
	return faultyQP{q, p.d}, err
}

type faultyQP struct {
	qp.QP
	d *Device
}

func (q faultyQP) Modify(a *qp.Attr, mask qp.AttrMask) error {
	steps := map[qp.State]Step{qp.Init: Init, qp.RTR: RTR, qp.RTS: RTS}
	if s, ok := steps[a.State]; ok && mask&qp.MaskState != 0 {
		if err := q.d.fail(s); err != nil {
			return err
		}
	}
	return q.QP.Modify(a, mask)
}

func (q faultyQP) PostSend(wrs []qp.SendWR) (int, error) {
	if err := q.d.fail(Send); err != nil {
		return 0, err
	}
	return q.QP.PostSend(wrs)
}
