package fabric

import (
	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// Register makes memory known to the host's NIC. It must not move, as no memory of
// Go's does, and stay until the fabric is not used any more.
func (h *Host) Register(buf []byte, access mr.Access) (mr.Region, error) {
	attr := &h.f.attr
	if err := attr.CheckMR(buf, access); err != nil {
		return mr.Region{}, errors.Wrapf(err, "host %d: register", h.id)
	}
	r, err := h.nic.CreateRegion(&h.pd, buf, access)
	if err != nil {
		return mr.Region{}, errors.Wrapf(err, "host %d: register %d bytes", h.id, len(buf))
	}
	return r.Region, nil
}

// NewCQ makes a completion queue. After Arm, notify is called once when a
// completion comes, from within the kernel's events; it must not poll or post, but
// schedule what does.
func (h *Host) NewCQ(entries int, notify func()) *nic.CQ { return h.nic.CreateCQ(entries, notify) }

// NewSinkCQ makes a completion queue that keeps nothing: completions go to the sink,
// from within the kernel's events, as nic.Sink says.
func (h *Host) NewSinkCQ(sink nic.Sink) *nic.CQ { return h.nic.CreateSinkCQ(0, func() {}, sink) }

// QP is a queue pair of a host, a qp.QP. Posted requests reach the NIC by events of
// the kernel.
type QP struct {
	*nic.QP
	h      *Host
	supply *supply
	closed bool
	entry       // its context
	held   fifo // packets that arrived and wait for something to be fetched
}

// NewQP makes a queue pair in RESET that completes to the given queues.
func (h *Host) NewQP(send, recv *nic.CQ, caps qp.Caps) (*QP, error) {
	q, err := h.nic.CreateQP(&h.pd, send, recv, nil, caps, false)
	if err != nil {
		return nil, errors.Wrapf(err, "host %d: queue pair", h.id)
	}
	own := &QP{QP: q, h: h}
	q.Owner = own
	h.newSupply(own)
	return own, nil
}

// PostSend posts requests with one doorbell.
func (q *QP) PostSend(wrs []qp.SendWR) (n int, err error) {
	if q.closed {
		return 0, qp.ErrClosed
	}
	n, err = q.QP.PostSend(wrs, qp.MaxMessage)
	if n > 0 {
		q.h.posted.Sends += n
		q.h.posted.Doorbells++
		if n == 1 && q.h.wqes.enabled() {
			q.h.carried(q.supply, q.NextIndex()-1)
		}
		q.h.doorbell(q.QP)
	}
	return n, err
}

// PostRecv posts receives.
func (q *QP) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	if q.closed {
		return 0, qp.ErrClosed
	}
	n, err = q.QP.PostRecv(wrs)
	q.h.posted.Receives += n
	if n > 0 && q.NeedsRecvBell() {
		q.h.doorbell(q.QP)
	}
	return n, err
}

// Modify sets attributes.
func (q *QP) Modify(a *qp.Attr, mask qp.AttrMask) error {
	if q.closed {
		return qp.ErrClosed
	}
	if err := q.h.nic.Modify(q.QP, a, mask); err != nil {
		return errors.Wrapf(err, "host %d: queue pair %#x", q.h.id, uint32(q.Num()))
	}
	k := q.h.f.k
	k.At(k.Now(), q.h.f.runKind, int32(q.h.id), 0)
	return nil
}

// Query gives the attributes.
func (q *QP) Query() (qp.Attr, error) {
	if q.closed {
		return qp.Attr{}, qp.ErrClosed
	}
	return q.Attr(), nil
}

// Close destroys the queue pair.
func (q *QP) Close() error {
	if q.closed {
		return qp.ErrClosed
	}
	q.closed = true
	q.h.contexts.forget(&q.entry)
	q.h.nic.DestroyQP(q.QP)
	return nil
}
