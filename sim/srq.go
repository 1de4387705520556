package sim

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// SRQ is a shared receive queue, a qp.SRQ.
type SRQ struct {
	pd     *PD
	core   *nic.SRQ
	caps   qp.SRQCaps
	closed atomic.Bool
	mu     sync.Mutex // one Arm or Close at a time
}

// CreateSRQ makes a shared receive queue.
func (p *PD) CreateSRQ(cfg verbs.SRQConfig) (qp.SRQ, error) {
	const op = "create"
	d := p.ctx.dev
	what := fmt.Sprintf("shared receive queue of %d requests", cfg.Caps.RecvWR)
	if err := p.check(op, what); err != nil {
		return nil, err
	}
	if err := d.attr.CheckSRQ(cfg); err != nil {
		return nil, d.err(op, what, err, "")
	}
	if !d.count(&d.srqs, d.attr.MaxSRQ) {
		return nil, d.err(op, what, verbs.ErrLimit, fmt.Sprintf("the device has at most %d shared receive queues", d.attr.MaxSRQ))
	}
	s := &SRQ{pd: p, caps: cfg.Caps}
	d.node.mu.Lock()
	s.core = d.node.nic.CreateSRQ(cfg.Caps)
	s.core.Owner = s
	d.node.mu.Unlock()
	p.mu.Lock()
	p.srqs++
	p.mu.Unlock()
	d.mu.Lock()
	d.shared = append(d.shared, s)
	d.mu.Unlock()
	return s, nil
}

// Caps are its capacities.
func (s *SRQ) Caps() qp.SRQCaps { return s.caps }

func (s *SRQ) err() error {
	switch {
	case s.closed.Load():
		return qp.ErrClosed
	case s.pd.ctx.dev.lost.Load():
		return verbs.ErrDeviceLost
	}
	return nil
}

// PostRecv posts receives.
func (s *SRQ) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.core.PostRecv(wrs)
}

// Arm asks for one event when fewer than limit receives are left.
func (s *SRQ) Arm(limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.pd.ctx.dev
	err := s.err()
	if err == nil {
		d.node.mu.Lock()
		err = s.core.Arm(limit)
		d.node.mu.Unlock()
	}
	if err != nil {
		return d.err("arm shared receive queue", "", err, "")
	}
	return nil
}

// Query gives capacities and limit.
func (s *SRQ) Query() (qp.SRQAttr, error) {
	d := s.pd.ctx.dev
	if err := s.err(); err != nil {
		return qp.SRQAttr{}, d.err("query shared receive queue", "", err, "")
	}
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	return s.core.Attr(), nil
}

// Close destroys the queue; what was posted is forgotten.
func (s *SRQ) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.pd.ctx.dev
	if s.closed.Load() {
		return d.err("close shared receive queue", "", qp.ErrClosed, "")
	}
	d.node.mu.Lock()
	users := s.core.Users()
	if users == 0 {
		s.closed.Store(true)
	}
	d.node.mu.Unlock()
	if users > 0 {
		return d.err("close shared receive queue", "", fmt.Errorf("%w: %d queue pairs use it", syscall.EBUSY, users), "close them first")
	}
	d.mu.Lock()
	d.srqs--
	d.shared = slices.DeleteFunc(d.shared, func(o *SRQ) bool { return o == s })
	d.mu.Unlock()
	s.pd.mu.Lock()
	s.pd.srqs--
	s.pd.mu.Unlock()
	return nil
}
