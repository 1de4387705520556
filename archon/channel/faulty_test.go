package channel_test

import (
	"sync/atomic"
	"syscall"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// step is a step of a set-up over RDMA that a test has fail.
type step int32

const (
	none step = iota
	stepOpen
	stepPD
	stepMR
	stepCQ
	stepArm
	stepQP
	stepInit
	stepRTR
	stepRTS
	stepSend
)

// faulty opens a device that fails at one step, which may change at any time.
type faulty struct {
	open  func() (verbs.Context, error)
	at    atomic.Int32
	fails atomic.Int64
}

func (f *faulty) fail(s step) error {
	if step(f.at.Load()) != s {
		return nil
	}
	f.fails.Add(1)
	return syscall.EIO
}

func (f *faulty) Open() (verbs.Context, error) {
	if err := f.fail(stepOpen); err != nil {
		return nil, err
	}
	ctx, err := f.open()
	return faultyContext{ctx, f}, err
}

type faultyContext struct {
	verbs.Context
	f *faulty
}

func (c faultyContext) AllocPD() (verbs.PD, error) {
	if err := c.f.fail(stepPD); err != nil {
		return nil, err
	}
	pd, err := c.Context.AllocPD()
	return faultyPD{pd, c.f}, err
}

func (c faultyContext) CreateCQ(cfg verbs.CQConfig) (cq.CQ, error) {
	if err := c.f.fail(stepCQ); err != nil {
		return nil, err
	}
	q, err := c.Context.CreateCQ(cfg)
	return faultyCQ{q, c.f}, err
}

type faultyCQ struct {
	cq.CQ
	f *faulty
}

func (q faultyCQ) Arm(solicited bool) error {
	if err := q.f.fail(stepArm); err != nil {
		return err
	}
	return q.CQ.Arm(solicited)
}

type faultyPD struct {
	verbs.PD
	f *faulty
}

func (p faultyPD) Register(b []byte, a mr.Access) (mr.Region, error) {
	if err := p.f.fail(stepMR); err != nil {
		return mr.Region{}, err
	}
	return p.PD.Register(b, a)
}

func (p faultyPD) CreateQP(cfg verbs.QPConfig) (qp.QP, error) {
	if err := p.f.fail(stepQP); err != nil {
		return nil, err
	}
	cfg.SendCQ, cfg.RecvCQ = cfg.SendCQ.(faultyCQ).CQ, cfg.RecvCQ.(faultyCQ).CQ
	q, err := p.PD.CreateQP(cfg)
	return faultyQP{q, p.f}, err
}

type faultyQP struct {
	qp.QP
	f *faulty
}

func (q faultyQP) Modify(a *qp.Attr, mask qp.AttrMask) error {
	steps := map[qp.State]step{qp.Init: stepInit, qp.RTR: stepRTR, qp.RTS: stepRTS}
	if s, ok := steps[a.State]; ok && mask&qp.MaskState != 0 {
		if err := q.f.fail(s); err != nil {
			return err
		}
	}
	return q.QP.Modify(a, mask)
}

func (q faultyQP) PostSend(wrs []qp.SendWR) (int, error) {
	if err := q.f.fail(stepSend); err != nil {
		return 0, err
	}
	return q.QP.PostSend(wrs)
}
