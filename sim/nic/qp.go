package nic

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// QP is a reliable-connection queue pair of one NIC. Where there are many, each line of 64
// bytes that a packet touches is a miss of the cache, so what each needs lies together.
type QP struct {
	busy
	sq sendQueue
	rq recvQueue

	caps    qp.Caps
	failed  atomic.Bool // in the error state: receives need a doorbell
	srq     *SRQ        // rq then holds only the receive that was taken last
	ticket  Ticket
	retired *lease   // of the last life
	bound   int      // windows
	replay  []answer // atomics answered lately, to be answered alike if asked again
	Owner   any      // the driver's
}

// busy is what packets need of a queue pair: with the first fields of sq, six lines.
type busy struct {
	// Connection.
	attr    qp.Attr
	sgid    verbs.GID
	route   Route
	nic     *NIC
	num     qp.Num
	state   qp.State
	sgType  verbs.GIDType
	isReady bool
	gone    bool // destroyed
	sigAll  bool
	port    uint8
	offered bool          // to the driver, which has not called Transmit since
	soft    atomic.Uint32 // qp.State as the application knows it
	life    atomic.Uint32 // counts resets: tells completions of an earlier life
	timerAt int32         // place in NIC.timers, -1: none

	requester
	responder

	pending []answer // READs and atomics to be answered, oldest first
	mtu     int      // payload bytes a packet
	lease   *lease   // on the memory of the send requests
	sendCQ  *CQ
	recvCQ  *CQ
	pd      *PD
	wakeAt  time.Duration // key in NIC.timers
}

// CreateQP makes a queue pair in state RESET; srq may be nil. The capacities were
// checked against the device's limits.
func (n *NIC) CreateQP(pd *PD, sendCQ, recvCQ *CQ, srq *SRQ, caps qp.Caps, sigAll bool) (*QP, error) {
	if n.qps.n >= n.cfg.Attr.MaxQP {
		return nil, verbs.ErrLimit
	}
	q := &QP{busy: busy{nic: n, pd: pd, sendCQ: sendCQ, recvCQ: recvCQ, sigAll: sigAll, timerAt: -1}, caps: caps, srq: srq}
	q.caps.Windows = n.cfg.Attr.Flags.Windows()
	q.sq.init(&q.caps)
	if srq != nil {
		srq.users++
		q.caps.RecvWR, q.caps.RecvSGE = 0, 0
		q.rq.init(&qp.Caps{RecvWR: 1, RecvSGE: srq.caps.RecvSGE})
	} else {
		q.rq.init(&caps)
	}
	q.newLife()
	q.num = n.newNum()
	n.qps.add(q)
	for _, c := range []*CQ{sendCQ, recvCQ} {
		c.users++
		c.qps = append(c.qps, q)
	}
	return q, nil
}

// newNum gives the next free number; 0 and 1 are for management, all ones is for
// multicast (IBTA 1.4, 10.2.4.1).
func (n *NIC) newNum() qp.Num {
	n.qps.grow()
	for {
		n.nextNum = (n.nextNum + 1) & 0xffffff
		if n.nextNum > 1 && n.nextNum != 0xffffff && n.qps.isFree(n.nextNum) {
			return n.nextNum
		}
	}
}

// DestroyQP ends a queue pair; requests not completed are forgotten. Their memory
// is free once the queue pair is Idle.
func (n *NIC) DestroyQP(q *QP) {
	n.timers.remove(q)
	n.qps.remove(q)
	q.gone = true
	q.newLife()
	if q.srq != nil {
		q.srq.users--
	}
	for _, c := range []*CQ{q.sendCQ, q.recvCQ} {
		c.users--
		i := slices.Index(c.qps, q)
		c.qps = slices.Delete(c.qps, i, i+1)
	}
}

// Idle reports, after DestroyQP or a move to RESET, that no packet in flight is
// being copied from the memory of its requests.
func (q *QP) Idle() bool { return q.retired == nil || q.retired.idle() }

// Num is the queue pair's number.
func (q *QP) Num() qp.Num { return q.num }

// Caps are its capacities.
func (q *QP) Caps() qp.Caps { return q.caps }

// State is the state as the application knows it; any goroutine may ask.
func (q *QP) State() qp.State { return qp.State(q.soft.Load()) }

// NextIsRead reports whether the next packet that would be sent asks for a READ.
func (q *QP) NextIsRead() bool { return q.cur != q.sq.posted() && q.sq.at(q.cur).op == qp.Read }

// Route is the way to the peer, nil before RTR.
func (q *QP) Route() Route { return q.route }

// NIC is the NIC of the queue pair.
func (q *QP) NIC() *NIC { return q.nic }

// Attr gives the attributes, with the NIC's own view of the state.
func (q *QP) Attr() qp.Attr {
	a := q.attr
	a.State, a.CurState = q.state, q.state
	if q.state == qp.RTR || q.state == qp.RTS || q.state == qp.SQD {
		a.SendPSN, a.RecvPSN = q.sendPSN, q.recvPSN
	}
	return a
}

// newLife starts the queue pair anew in RESET.
func (q *QP) newLife() {
	q.nic.unbindAll(q)
	q.state = qp.Reset
	q.soft.Store(uint32(qp.Reset))
	q.life.Add(1)
	q.failed.Store(false)
	if q.lease != nil {
		q.lease.stop()
	}
	q.retired, q.lease = q.lease, &lease{q: q}
	q.attr, q.route, q.port, q.ticket = qp.Attr{}, nil, 1, 0
	q.requester = requester{}
	q.responder = responder{}
	q.pending, q.replay = nil, nil
	q.sq.forget()
	q.rq.forget()
	q.cur = q.sq.una
}

// deadline is when the queue pair's next timer runs out.
func (q *QP) deadline() time.Duration {
	switch {
	case q.state != qp.RTS && q.state != qp.SQD:
		return never
	case q.rnrWait:
		return q.rnrUntil
	case q.ackDeadline > 0:
		return q.ackDeadline
	}
	return never
}

// completeSend reports the oldest send request and frees it. Its place was made
// sure by una < posted.
func (n *NIC) completeSend(q *QP, st cq.Status) {
	i := q.sq.una
	w := q.sq.at(i)
	q.sq.una++
	if st == cq.Success && !q.sigAll && w.flags&qp.Signaled == 0 {
		return
	}
	e := entry{
		Completion: cq.Completion{ID: w.id, Status: st, QPNum: q.num, Opcode: sendOpcodes[w.op]},
		q:          q, life: q.life.Load(), slot: i,
	}
	if w.op == qp.Read || w.op.IsAtomic() {
		e.ByteLen = w.length
	}
	q.sendCQ.add(&e, false)
}

var sendOpcodes = [...]cq.Opcode{
	qp.Write: cq.Write, qp.WriteWithImm: cq.Write, qp.Send: cq.Send, qp.SendWithImm: cq.Send, qp.Read: cq.Read,
	qp.CompareSwap: cq.CompareSwap, qp.FetchAdd: cq.FetchAdd,
	qp.LocalInv: cq.LocalInvalidate, qp.BindMW: cq.BindMW, qp.SendWithInv: cq.Send,
}

// completeRecv reports the oldest receive and frees it.
func (n *NIC) completeRecv(q *QP, c cq.Completion, solicited bool) {
	i := q.rq.una
	q.rq.una++
	c.ID, c.QPNum = q.rq.at(i).id, q.num
	q.recvCQ.add(&entry{Completion: c, q: q, life: q.life.Load(), slot: i, recv: true}, solicited)
}
