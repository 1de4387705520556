package sim

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// QP is a queue pair, a qp.QP.
type QP struct {
	pd         *PD
	core       *nic.QP
	maxMessage uint32
	closed     atomic.Bool
	mu         sync.Mutex // one Modify or Close at a time
}

// create makes the queue pair in the NIC, if its queues are still there.
func (q *QP) create(send, recv *CQ, srq *SRQ, cfg verbs.QPConfig) (err error) {
	n := q.pd.ctx.dev.node
	n.mu.Lock()
	defer n.mu.Unlock()
	var shared *nic.SRQ
	switch {
	case send.shut.Load() || recv.shut.Load():
		return cq.ErrClosed
	case srq != nil && srq.closed.Load():
		return qp.ErrClosed
	case srq != nil:
		shared = srq.core
	}
	if q.core, err = n.nic.CreateQP(&q.pd.core, send.core, recv.core, shared, cfg.Caps, cfg.SigAll); err != nil {
		return err
	}
	q.core.Owner = q
	if port, ok := n.nic.Port(1); ok {
		q.maxMessage = port.MaxMessage
	}
	return nil
}

// Num is the queue pair's number.
func (q *QP) Num() qp.Num { return q.core.Num() }

// Caps are its capacities.
func (q *QP) Caps() qp.Caps { return q.core.Caps() }

// State is the state as software knows it.
func (q *QP) State() qp.State { return q.core.State() }

func (q *QP) err() error {
	switch {
	case q.closed.Load():
		return qp.ErrClosed
	case q.pd.ctx.dev.lost.Load():
		return verbs.ErrDeviceLost
	}
	return nil
}

// PostSend posts requests with one doorbell. It runs the NIC, unless another
// goroutine does.
func (q *QP) PostSend(wrs []qp.SendWR) (n int, err error) {
	if err := q.err(); err != nil {
		return 0, err
	}
	n, err = q.core.PostSend(wrs, q.maxMessage)
	if n > 0 {
		q.pd.ctx.dev.node.ring(q.core)
	}
	return n, err
}

// PostRecv posts receives.
func (q *QP) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	if err := q.err(); err != nil {
		return 0, err
	}
	n, err = q.core.PostRecv(wrs)
	if n > 0 && q.core.NeedsRecvBell() {
		q.pd.ctx.dev.node.ring(q.core)
	}
	return n, err
}

func (q *QP) name() string { return fmt.Sprintf("queue pair %#x", uint32(q.Num())) }

// Modify sets attributes.
func (q *QP) Modify(a *qp.Attr, mask qp.AttrMask) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.pd.ctx.dev
	if err := q.err(); err != nil {
		return d.err("modify", q.name(), err, "")
	}
	var err error
	d.node.control(func() {
		if err = d.node.nic.Modify(q.core, a, mask); err == nil && mask&qp.MaskPort != 0 {
			p, _ := d.node.nic.Port(int(a.Port))
			q.maxMessage = p.MaxMessage
		}
	})
	if err != nil {
		return d.err("modify", q.name(), err, "")
	}
	await(q.core.Idle)
	return nil
}

// Query gives the attributes, with the state as the NIC has it.
func (q *QP) Query() (qp.Attr, error) {
	d := q.pd.ctx.dev
	if err := q.err(); err != nil {
		return qp.Attr{}, d.err("query", q.name(), err, "")
	}
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	return q.core.Attr(), nil
}

// Close destroys the queue pair. It returns when no packet on its way refers to
// the memory of its requests.
func (q *QP) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Swap(true) {
		return q.pd.ctx.dev.err("close", q.name(), qp.ErrClosed, "")
	}
	n := q.pd.ctx.dev.node
	n.mu.Lock()
	n.nic.DestroyQP(q.core)
	n.mu.Unlock()
	await(q.core.Idle)
	q.pd.mu.Lock()
	q.pd.qps--
	q.pd.mu.Unlock()
	return nil
}
