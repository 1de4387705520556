package nic

import (
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// requester is the sending half of a queue pair. Requests from sq.una to cur are
// on their way; the cursor (cur, curPkt) is the next packet to send and goes back
// to an earlier one when something was lost.
type requester struct {
	cur     index     // request at the cursor
	curPkt  uint32    // packet in it
	sendPSN qp.PSN    // of the next packet never sent
	unaPSN  qp.PSN    // oldest packet not acknowledged
	maxPSN  qp.PSN    // next packet never put on the wire: before it, sends are retransmissions
	cause   cq.Status // why the oldest request failed

	ackDeadline time.Duration // 0: nothing under way, or no timeout
	rnrUntil    time.Duration
	grace       bool  // the deadline passed, answers already delivered get a last look
	rnrWait     bool  // waiting, as the peer had no receive
	reads       uint8 // READs and atomics under way
	retryLeft   uint8
	rnrLeft     uint8
	wentBack    bool // went back for lost responses; once until there is progress
	drainTold   bool // SQ_DRAINED is not wanted or was sent
}

func (q *QP) startRequester() {
	q.cur, q.curPkt = q.sq.una, 0
	q.sendPSN, q.unaPSN, q.maxPSN = q.attr.SendPSN, q.attr.SendPSN, q.attr.SendPSN
	q.retryLeft, q.rnrLeft = q.attr.RetryCount, q.attr.RNRRetry
}

// transmit sends up to budget packets from the cursor on. more: only the budget
// stopped it.
func (n *NIC) transmit(q *QP, budget int) (more bool) {
	if q.state != qp.RTS && q.state != qp.SQD || q.rnrWait {
		return false
	}
	end := q.sq.posted()
	for q.cur != end {
		w := q.sq.at(q.cur)
		if !w.started && !n.start(q, w) {
			break
		}
		if w.op.IsLocal() { // done when it started
			q.cur, q.curPkt = q.cur+1, 0
			n.completeLocal(q)
			continue
		}
		if q.sendLimit(w) {
			break
		}
		if budget == 0 {
			return true
		}
		budget--
		n.sendRequest(q, w)
	}
	if q.state == qp.SQD && !q.drainTold && (q.sq.una == end || !q.sq.at(q.sq.una).started) {
		q.drainTold = true
		n.qpEvent(q, verbs.EventSQDrained)
	}
	return false
}

// wantsToSend reports whether transmit has something to look at.
func (q *QP) wantsToSend() bool {
	return !q.rnrWait && (q.state == qp.RTS && q.cur != q.sq.posted() || q.state == qp.SQD)
}

func (q *QP) sendLimit(w *sendWQE) bool {
	psn := w.firstPSN.Add(q.curPkt)
	return psn.Sub(q.unaPSN) >= q.nic.cfg.Inflight && q.unaPSN != psn
}

// start admits the request at the cursor for the first time: rules of order,
// memory check, PSNs. false: not now, or never (a local fault).
func (n *NIC) start(q *QP, w *sendWQE) bool {
	if q.state != qp.RTS || w.status != 0 {
		return false
	}
	responds, local := w.op == qp.Read || w.op.IsAtomic(), w.op.IsLocal()
	st := cq.Success
	switch {
	case w.flags&qp.Fence != 0 && q.reads > 0:
		return false
	case responds && q.attr.MaxReads == 0:
		st = cq.LocalQPOperationError
	case responds && q.reads >= q.attr.MaxReads:
		return false
	case local:
		st = n.runLocal(q, w)
	default:
		st = n.resolveSend(q, w)
	}
	if st != cq.Success {
		if w.status = uint8(st); q.cur == q.sq.una {
			n.fail(q, st)
		}
		return false
	}
	w.started = true
	w.firstPSN = q.sendPSN
	w.packets = uint32(max(1, (int(w.length)+q.mtu-1)/q.mtu))
	switch {
	case local:
		w.packets = 0
	case w.op.IsAtomic():
		w.packets = 1
	}
	q.sendPSN = q.sendPSN.Add(w.packets)
	if responds {
		q.reads++
	}
	return true
}

// resolveSend looks up the memory of the request at the cursor.
func (n *NIC) resolveSend(q *QP, w *sendWQE) cq.Status {
	s := &q.sq
	segs := s.resolved(q.cur)
	w.nseg = 0
	if w.flags&qp.Inline != 0 {
		if w.length > 0 {
			segs[0] = segment{b: s.inlined(q.cur)[:w.length]}
			w.nseg = 1
		}
		return cq.Success
	}
	write := w.op == qp.Read || w.op.IsAtomic()
	for _, g := range s.listOf(q.cur) {
		if g.Length == 0 {
			continue
		}
		seg, ok := n.local(q.pd, g.LKey, g.Addr, g.Length, write)
		if !ok {
			return cq.LocalProtectionError
		}
		segs[w.nseg] = seg
		w.nseg++
	}
	return cq.Success
}

var requestOps = [...][4]Op{ // first, middle, last, only
	qp.Send:         {OpSendFirst, OpSendMiddle, OpSendLast, OpSendOnly},
	qp.SendWithImm:  {OpSendFirst, OpSendMiddle, OpSendLastImm, OpSendOnlyImm},
	qp.Write:        {OpWriteFirst, OpWriteMiddle, OpWriteLast, OpWriteOnly},
	qp.WriteWithImm: {OpWriteFirst, OpWriteMiddle, OpWriteLastImm, OpWriteOnlyImm},
	qp.Read:         {3: OpReadRequest},
	qp.CompareSwap:  {3: OpCompareSwap},
	qp.FetchAdd:     {3: OpFetchAdd},
	qp.SendWithInv:  {OpSendFirst, OpSendMiddle, OpSendLastInv, OpSendOnlyInv},
}

// sendRequest sends the packet at the cursor and moves on.
func (n *NIC) sendRequest(q *QP, w *sendWQE) {
	k, psn := q.curPkt, w.firstPSN.Add(q.curPkt)
	if psn.Less(q.maxPSN) {
		n.stats.Retransmits++
	}
	step, place := uint32(1), 3
	last := true
	if w.op == qp.Read {
		step = w.packets - k
	} else if w.packets > 1 {
		switch last = k == w.packets-1; {
		case k == 0:
			place = 0
		case last:
			place = 2
		default:
			place = 1
		}
	}
	p := n.header(q, requestOps[w.op][place], psn)
	p.RKey, p.Addr, p.Length = mr.RKey(w.rkey), w.remoteAddr, w.length
	switch {
	case w.op == qp.Read:
		// After a loss the rest is asked for, from the first missing packet on.
		p.Addr += uint64(k) * uint64(q.mtu)
		p.Length -= k * uint32(min(q.mtu, unlimited))
	case w.op.IsAtomic():
		p.Compare, p.Swap = w.compareAdd, w.swap
		if w.op == qp.FetchAdd {
			p.Swap = w.compareAdd
		}
	default:
		off := int(k) * q.mtu
		p.Payload = Payload{lease: q.lease, off: off, n: min(q.mtu, int(w.length)-off)}
		switch segs := q.sq.segsOf(q.cur); len(segs) {
		case 0:
		case 1:
			p.Payload.one = segs[0]
		default:
			p.Payload.many = segs
		}
		if last {
			p.Imm, p.Solicited = w.imm, w.flags&qp.Solicited != 0
		}
	}
	p.AckReq = last || k%ackEvery == ackEvery-1
	if q.curPkt += step; q.curPkt >= w.packets {
		q.cur, q.curPkt = q.cur+1, 0
	}
	if end := psn.Add(step); q.maxPSN.Less(end) {
		q.maxPSN = end
	}
	if t := q.attr.AckTimeout.Duration(); t > 0 && q.ackDeadline == 0 {
		q.ackDeadline = n.now + t
	}
	n.send(q)
}

// goBack moves the cursor to a packet that was sent before.
func (q *QP) goBack(psn qp.PSN) {
	if i, k, ok := q.requestOf(psn); ok {
		q.cur, q.curPkt = i, k
	}
}

// requestOf finds the request under way whose packet k has the PSN.
func (q *QP) requestOf(psn qp.PSN) (i index, k uint32, ok bool) {
	for i = q.sq.una; i != q.sq.posted(); i++ {
		w := q.sq.at(i)
		if !w.started {
			break
		}
		if d := psn.Sub(w.firstPSN); d >= 0 && uint32(d) < w.packets {
			return i, uint32(d), true
		}
	}
	return 0, 0, false
}

// expire handles a queue pair whose timer may have run out.
func (n *NIC) expire(q *QP) {
	if d := q.deadline(); d > n.now {
		return
	}
	if q.rnrWait {
		q.rnrWait = false
		n.wake(q)
		return
	}
	t := q.attr.AckTimeout.Duration()
	if !n.fabric.Processed(q.route, q.ticket) {
		// Our packets wait in the peer's queue: nothing is lost.
		q.ackDeadline, q.grace = n.now+t, false
		return
	}
	if !q.grace {
		q.ackDeadline, q.grace = n.now+1, true
		return
	}
	n.stats.Timeouts++
	if q.memoryGone() {
		n.fail(q, cq.LocalProtectionError)
		return
	}
	if q.retryLeft == 0 {
		n.fail(q, cq.RetryExceededError)
		return
	}
	q.retryLeft--
	q.ackDeadline, q.grace = n.now+t, false
	q.wentBack = false
	q.goBack(q.unaPSN)
	n.wake(q)
}

// memoryGone reports that memory of the oldest request was deregistered while
// it was on its way: the peer cannot have read it.
func (q *QP) memoryGone() bool {
	for _, s := range q.sq.segsOf(q.sq.una) {
		if s.region != nil && s.region.isRevoked() {
			return true
		}
	}
	return false
}
