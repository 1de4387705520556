//go:build linux

package kdev

import (
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
)

// SRQ is what the kernel knows of a shared receive queue. A provider embeds it and adds
// the queue's memory, PostRecv, and Close, which begins with Destroy. All methods may be
// called by any goroutine once Create succeeded.
type SRQ struct {
	lifetime
	Handle uverbs.SRQHandle // the kernel's name of it
	Given  qp.Caps          // capacities, of the receive side alone; the provider sets them before it hands the queue out

	pd *PD
}

// Create makes the queue in the kernel. self is the provider's queue, uhw the driver's
// own part of the request.
func (s *SRQ) Create(d *PD, self SharedQueue, caps qp.SRQCaps, uhw *uverbs.UHW) (err error) {
	s.pd, s.ctx = d, d.ctx
	s.User = s.ctx.enter(&object{srq: self})
	if s.Handle, _, err = s.ctx.K.CreateSRQ(&uverbs.SRQConfig{PD: d.h, Caps: caps, UserHandle: s.User}, uhw); err != nil {
		s.ctx.Leave(s.User, 0)
	}
	return err
}

// Caps are the capacities given.
func (s *SRQ) Caps() qp.SRQCaps {
	return qp.SRQCaps{RecvWR: s.Given.RecvWR, RecvSGE: s.Given.RecvSGE}
}

// Domain is the protection domain of the queue.
func (s *SRQ) Domain() *PD { return s.pd }

// Arm asks for one event when fewer than limit receives are left.
func (s *SRQ) Arm(limit int) error { return s.ArmWith(limit, nil) }

// ArmWith is Arm with the driver's own part of the request.
func (s *SRQ) ArmWith(limit int, uhw *uverbs.UHW) error {
	const op = "arm shared receive queue"
	s.control.Lock()
	defer s.control.Unlock()
	if err := s.open(op, ""); err != nil {
		return err
	}
	if err := s.Caps().CheckLimit(limit); err != nil {
		return s.ctx.Fail(op, "", err, "")
	}
	return s.ctx.K.ArmSRQ(s.Handle, limit, uhw)
}

// Query asks the kernel for the limit. The capacities are the queue's own: what drivers
// say of them differs between kernel releases.
func (s *SRQ) Query() (qp.SRQAttr, error) {
	s.control.Lock()
	defer s.control.Unlock()
	if err := s.open("query shared receive queue", ""); err != nil {
		return qp.SRQAttr{}, err
	}
	a, err := s.ctx.K.QuerySRQ(s.Handle)
	a.Caps = s.Caps()
	return a, err
}

// Destroy ends the queue in the kernel; EBUSY while a queue pair uses it. When it
// succeeds, the device no longer reads the queue's memory.
func (s *SRQ) Destroy() error {
	return s.end("destroy shared receive queue", "", func() (uverbs.Reported, error) { return s.ctx.K.DestroySRQ(s.Handle) })
}
