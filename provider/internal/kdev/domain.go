//go:build linux

package kdev

import (
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// sharedQueue is a provider's type of shared receive queues: a pointer, nil where there
// is none.
type sharedQueue interface {
	comparable
	SharedQueue
}

// Domain is a protection domain of a provider with these types of queues.
type Domain[CQ CompletionQueue, SRQ sharedQueue] struct {
	*PD
	newQP  func(d *PD, send, recv CQ, srq SRQ, cfg verbs.QPConfig) (qp.QP, error)
	newSRQ func(d *PD, want qp.SRQCaps) (qp.SRQ, error)
}

// NewDomain makes a protection domain. uhw is the driver's own part of the request; it
// may be nil. The functions make a queue pair in RESET, srq nil if it has a receive
// queue of its own, and a shared receive queue, of what was checked: all is of this
// context and domain, open, and within the limits.
func NewDomain[CQ CompletionQueue, SRQ sharedQueue](c *Context, uhw *uverbs.UHW,
	newQP func(d *PD, send, recv CQ, srq SRQ, cfg verbs.QPConfig) (qp.QP, error), newSRQ func(d *PD, want qp.SRQCaps) (qp.SRQ, error),
) (verbs.PD, error) {
	d, err := c.newPD(uhw)
	if err != nil {
		return nil, err
	}
	return &Domain[CQ, SRQ]{d, newQP, newSRQ}, nil
}

// CreateQP makes a queue pair in RESET.
func (d *Domain[CQ, SRQ]) CreateQP(cfg verbs.QPConfig) (qp.QP, error) {
	send, recv, err := d.queues(cfg)
	if err != nil {
		return nil, err
	}
	srq, err := d.shared(cfg)
	if err != nil {
		return nil, err
	}
	return d.newQP(d.PD, send, recv, srq, cfg)
}

// CreateSRQ makes a shared receive queue.
func (d *Domain[CQ, SRQ]) CreateSRQ(cfg verbs.SRQConfig) (qp.SRQ, error) {
	if err := d.ctx.Limits.CheckSRQ(cfg); err != nil {
		return nil, d.ctx.Fail("create shared receive queue", "", err, "")
	}
	return d.newSRQ(d.PD, cfg.Caps)
}

// queues checks what is asked of a new queue pair and gives its completion queues as
// what they are, if they are of the domain's context.
func (d *Domain[CQ, SRQ]) queues(cfg verbs.QPConfig) (send, recv CQ, err error) {
	const op = "create queue pair"
	if err := d.ctx.Limits.CheckQP(cfg); err != nil {
		return send, recv, d.ctx.Fail(op, "", err, "")
	}
	send, ok1 := cfg.SendCQ.(CQ)
	recv, ok2 := cfg.RecvCQ.(CQ)
	if !ok1 || !ok2 || send.Context() != d.ctx || recv.Context() != d.ctx {
		return send, recv, d.ctx.Fail(op, "", fmt.Errorf("%w: a completion queue is of another context", verbs.ErrLimit), "use queues of this context")
	}
	if send.Closed() || recv.Closed() {
		return send, recv, d.ctx.Fail(op, "", cq.ErrClosed, "")
	}
	return send, recv, nil
}

// shared gives the shared receive queue of a new queue pair as what it is, nil if there
// is none asked for. It must be of the same domain.
func (d *Domain[CQ, SRQ]) shared(cfg verbs.QPConfig) (srq SRQ, err error) {
	if cfg.SRQ == nil {
		return srq, nil
	}
	srq, ok := cfg.SRQ.(SRQ)
	if !ok || srq.Domain() != d.PD {
		err = fmt.Errorf("%w: the shared receive queue belongs to another protection domain", syscall.EINVAL)
		return srq, d.ctx.Fail("create queue pair", "", err, "use one of this domain")
	}
	if srq.Closed() {
		return srq, d.ctx.Fail("create queue pair", "", qp.ErrClosed, "")
	}
	return srq, nil
}
