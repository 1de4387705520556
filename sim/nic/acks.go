package nic

import (
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// response handles an acknowledgement or READ response.
func (n *NIC) response(q *QP, p *Packet, f opFlag) {
	if q.state != qp.RTS && q.state != qp.SQD {
		n.stats.PacketsDropped++
		return
	}
	if p.PSN.Sub(q.unaPSN) < 0 || p.PSN.Sub(q.sendPSN) >= 0 {
		return // of long ago, or for nothing that we sent (a ghost)
	}
	switch {
	case f&isReadResp != 0, f&isAtomic != 0:
		n.advance(q, before(p.PSN)) // all before it are acknowledged
		n.dataResponse(q, p, f)
	case p.Syndrome&synKind == 0:
		n.advance(q, p.PSN)
	case p.Syndrome&synKind == synRNR:
		n.rnrNak(q, p)
	case p.Syndrome&synKind == synNak:
		n.nak(q, p)
	}
	if q.state != qp.Err {
		n.wake(q)
	}
}

// oldest is the oldest request under way, nil if there is none.
func (q *QP) oldest() *sendWQE {
	if q.sq.una == q.sq.posted() {
		return nil
	}
	if w := q.sq.at(q.sq.una); w.started {
		return w
	}
	return nil
}

// advance acknowledges every packet up to psn, and completes requests. READs and
// atomics are not completed by it: if psn is beyond one, its response was lost.
func (n *NIC) advance(q *QP, psn qp.PSN) {
	for {
		w := q.oldest()
		if w == nil {
			break
		}
		last := w.firstPSN.Add(w.packets - 1)
		if w.op == qp.Read || w.op.IsAtomic() {
			if psn.Sub(w.firstPSN.Add(w.got)) >= 0 {
				n.impliedNak(q)
			}
			break
		}
		if psn.Less(last) {
			if next := psn.Add(1); q.unaPSN.Less(next) {
				q.unaPSN = next
				n.progress(q)
			}
			break
		}
		n.completeOldest(q, w)
		if q.state == qp.Err {
			return
		}
	}
}

// completeLocal ends requests that sent nothing, up to one that awaits the peer.
func (n *NIC) completeLocal(q *QP) {
	for w := q.oldest(); w != nil && w.op.IsLocal() && q.state != qp.Err; w = q.oldest() {
		n.completeOne(q, w)
	}
}

// completeOldest ends the oldest request with success, and those after it that sent
// nothing.
func (n *NIC) completeOldest(q *QP, w *sendWQE) {
	n.completeOne(q, w)
	n.completeLocal(q)
}

func (n *NIC) completeOne(q *QP, w *sendWQE) {
	q.unaPSN = w.firstPSN.Add(w.packets)
	if q.cur == q.sq.una {
		q.cur, q.curPkt = q.cur+1, 0
	}
	if w.op == qp.Read || w.op.IsAtomic() {
		q.reads--
	}
	n.completeSend(q, cq.Success)
	n.progress(q)
	if q.sq.una != q.sq.posted() {
		if w = q.sq.at(q.sq.una); !w.started && w.status != 0 && q.cur == q.sq.una {
			n.fail(q, cq.Status(w.status))
		}
	}
}

// progress restarts timer and counters, as a packet was acknowledged.
func (n *NIC) progress(q *QP) {
	q.retryLeft, q.rnrLeft = q.attr.RetryCount, q.attr.RNRRetry
	q.wentBack, q.grace, q.rnrWait = false, false, false
	q.ackDeadline = 0
	if q.unaPSN != q.sendPSN {
		if t := q.attr.AckTimeout.Duration(); t > 0 {
			q.ackDeadline = n.now + t
		}
	}
}

// dataResponse takes a READ response or an atomic's result.
func (n *NIC) dataResponse(q *QP, p *Packet, f opFlag) {
	w := q.oldest()
	if w == nil || q.state == qp.Err || p.PSN != q.unaPSN {
		return // an earlier response is missing, or we have this one
	}
	segs := q.sq.segsOf(q.sq.una)
	if f&isAtomic != 0 {
		if !w.op.IsAtomic() {
			n.fail(q, cq.BadResponseError)
			return
		}
		if q.memoryGone() {
			n.fail(q, cq.LocalProtectionError)
			return
		}
		n.place(&scatter{segs: segs}, BytesPayload(nativeBytes(p.Swap, &n.word)))
		n.completeOldest(q, w)
		return
	}
	off := int(w.got) * q.mtu
	want := min(q.mtu, int(w.length)-off)
	if w.op != qp.Read || p.Payload.Len() != want || (f&ends != 0) != (w.got+1 == w.packets) {
		n.fail(q, cq.BadResponseError)
		return
	}
	if q.memoryGone() {
		n.fail(q, cq.LocalProtectionError)
		return
	}
	d := scatter{segs: segs}
	d.seek(off)
	if !n.place(&d, p.Payload) {
		return // the peer took the memory back: as good as lost
	}
	if w.got++; w.got == w.packets {
		n.completeOldest(q, w)
		return
	}
	q.unaPSN = q.unaPSN.Add(1)
	n.progress(q)
}

// impliedNak goes back to the oldest request, whose response was lost (IBTA 1.4,
// 9.7.5.1.1). Later responses on their way do not make it go back again.
func (n *NIC) impliedNak(q *QP) {
	if q.wentBack {
		return
	}
	q.wentBack = true
	n.stats.ImpliedNaks++
	q.goBack(q.unaPSN)
}

// rnrNak waits and sends again, as the peer had no receive posted (IBTA 1.4,
// 9.7.5.2.8).
func (n *NIC) rnrNak(q *QP, p *Packet) {
	n.stats.RNRNaksReceived++
	n.advance(q, before(p.PSN))
	if q.oldest() == nil || q.state == qp.Err || p.PSN != q.unaPSN || q.rnrWait {
		return
	}
	if q.attr.RNRRetry != 7 {
		if q.rnrLeft == 0 {
			n.fail(q, cq.RNRRetryExceededError)
			return
		}
		q.rnrLeft--
	}
	q.goBack(p.PSN)
	q.rnrWait, q.ackDeadline, q.grace = true, 0, false
	q.rnrUntil = n.now + qp.RNRTimer(p.Syndrome&synDetail).Duration()
}

// nak handles a negative acknowledgement (IBTA 1.4, 9.7.5.2.4 and 9.9.2.1).
func (n *NIC) nak(q *QP, p *Packet) {
	if p.Syndrome == nakPSN {
		n.stats.SeqNaksReceived++
	}
	n.advance(q, before(p.PSN))
	if q.oldest() == nil || q.state == qp.Err || p.PSN != q.unaPSN {
		return // a response before it was lost; it comes again
	}
	switch p.Syndrome {
	case nakPSN:
		if q.retryLeft == 0 {
			n.fail(q, cq.RetryExceededError)
			return
		}
		q.retryLeft--
		q.goBack(p.PSN)
		if t := q.attr.AckTimeout.Duration(); t > 0 {
			q.ackDeadline, q.grace = n.now+t, false
		}
	case nakInvalid:
		n.fail(q, cq.RemoteInvalidRequestError)
	case nakAccess:
		n.fail(q, cq.RemoteAccessError)
	case nakRemote:
		n.fail(q, cq.RemoteOperationError)
	default:
		n.fail(q, cq.BadResponseError)
	}
}

// fail ends the queue pair because of its oldest send request.
func (n *NIC) fail(q *QP, st cq.Status) {
	q.cause = st
	n.stats.QPErrors++
	n.enterErr(q)
}

// failResponder ends the queue pair because of a request of the peer.
func (n *NIC) failResponder(q *QP, t verbs.EventType) {
	n.stats.QPErrors++
	n.qpEvent(q, t)
	n.enterErr(q)
}

// enterErr takes the queue pair to the error state and flushes it.
func (n *NIC) enterErr(q *QP) {
	if q.state == qp.Err {
		return
	}
	q.state = qp.Err
	q.failed.Store(true)
	n.timers.remove(q)
	q.lease.stop()
	n.flush(q)
}

// flush completes everything posted, the request that failed with its cause and
// the others as flushed. While a peer still copies from a request's memory it
// waits; the end of that copy rings the doorbell.
func (n *NIC) flush(q *QP) {
	if !q.lease.idle() {
		return
	}
	for q.sq.una != q.sq.posted() {
		st := cq.WRFlushError
		if q.cause != cq.Success {
			st, q.cause = q.cause, cq.Success
		}
		n.completeSend(q, st)
	}
	for q.rq.una != q.rq.posted() {
		st := cq.WRFlushError
		if q.recvCause != cq.Success {
			st, q.recvCause = q.recvCause, cq.Success
		}
		n.completeRecv(q, cq.Completion{Status: st, Opcode: cq.Recv}, false)
	}
	if q.srq != nil && !q.lastTold {
		q.lastTold = true
		n.qpEvent(q, verbs.EventLastWQEReached)
	}
}
