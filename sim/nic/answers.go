package nic

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// takeResponding handles a new READ or atomic request.
func (n *NIC) takeResponding(q *QP, p *Packet, f opFlag) {
	need := mr.RemoteRead
	if f&isAtomic != 0 {
		need = mr.RemoteAtomic
	}
	if q.attr.Access&need == 0 || len(q.pending) >= int(q.attr.MaxDestReads) ||
		f&isAtomic != 0 && (p.Addr%8 != 0 || !n.cfg.Attr.Atomics) || p.Length > qp.MaxMessage {
		n.refuse(q, f, nakInvalid, cq.Success, verbs.EventQPRequestError)
		return
	}
	a := answer{psn: p.PSN, addr: p.Addr, length: p.Length}
	if f&isAtomic != 0 {
		r := n.remote(q, p.RKey, p.Addr, 8, mr.RemoteAtomic)
		if r == nil {
			n.refuse(q, f, nakAccess, cq.Success, verbs.EventQPAccessError)
			return
		}
		a.atomic = true
		if b := r.slice(p.Addr, 8); p.Op == OpCompareSwap {
			a.old = compareSwap(b, p.Compare, p.Swap)
		} else {
			a.old = fetchAdd(b, p.Swap)
		}
		q.remember(a)
		q.recvPSN = q.recvPSN.Add(1)
	} else {
		if !n.findRead(q, p, &a) {
			n.refuse(q, f, nakAccess, cq.Success, verbs.EventQPAccessError)
			return
		}
		q.recvPSN = q.recvPSN.Add(q.packetsOf(p.Length))
	}
	q.msn++
	q.pending = append(q.pending, a)
}

func (n *NIC) findRead(q *QP, p *Packet, a *answer) bool {
	if p.Length > 0 {
		a.region = n.remote(q, p.RKey, p.Addr, uint64(p.Length), mr.RemoteRead)
		return a.region != nil
	}
	return true
}

// packetsOf is how many packets a message of that length takes.
func (q *QP) packetsOf(length uint32) uint32 {
	return uint32(max(1, (int64(length)+int64(q.mtu)-1)/int64(q.mtu)))
}

// remember keeps an atomic's result for as many atomics as the peer may have
// outstanding (IBTA 1.4, 9.4.5).
func (q *QP) remember(a answer) {
	if len(q.replay) == cap(q.replay) {
		copy(q.replay, q.replay[1:])
		q.replay = q.replay[:len(q.replay)-1]
	}
	q.replay = append(q.replay, a)
}

// duplicate handles a request that was taken before: the answer was lost. READs
// are done again, atomics are answered as they were, the rest is acknowledged
// (IBTA 1.4, 9.7.5.1.5).
func (n *NIC) duplicate(q *QP, p *Packet, f opFlag) {
	n.stats.Duplicates++
	n.wake(q)
	if f&(isRead|isAtomic) == 0 {
		q.ackDue = true
		return
	}
	if len(q.pending) == cap(q.pending) {
		return // the peer asks again
	}
	if f&isAtomic != 0 {
		for _, a := range q.replay {
			if a.psn == p.PSN {
				q.pending = append(q.pending, a)
				break
			}
		}
		return
	}
	a := answer{psn: p.PSN, addr: p.Addr, length: p.Length}
	if p.Length > qp.MaxMessage || q.attr.Access&mr.RemoteRead == 0 || !n.findRead(q, p, &a) {
		n.refuseAt(q, p.PSN, nakAccess)
		n.failResponder(q, verbs.EventQPAccessError)
		return
	}
	q.pending = append(q.pending, a)
}

// respond answers pending READs and atomics with up to budget packets, and gives
// what is left of it. more: the budget stopped it.
func (n *NIC) respond(q *QP, budget int) (left int, more bool) {
	for len(q.pending) > 0 {
		a := &q.pending[0]
		packets := q.packetsOf(a.length)
		if a.atomic {
			packets = 1
		}
		for ; a.sent < packets; a.sent++ {
			if budget == 0 {
				return 0, true
			}
			budget--
			n.sendAnswer(q, a, packets)
		}
		if a.psn.Add(packets) == q.recvPSN {
			q.ackDue = false // the answer says as much
		}
		copy(q.pending, q.pending[1:])
		q.pending = q.pending[:len(q.pending)-1]
	}
	return budget, false
}

func (n *NIC) sendAnswer(q *QP, a *answer, packets uint32) {
	if a.atomic {
		p := n.header(q, OpAtomicAck, a.psn)
		p.Syndrome, p.MSN, p.Swap = synAck, q.msn&0xffffff, a.old
		n.send(q)
		return
	}
	op := OpReadRespMiddle
	switch {
	case packets == 1:
		op = OpReadRespOnly
	case a.sent == 0:
		op = OpReadRespFirst
	case a.sent == packets-1:
		op = OpReadRespLast
	}
	p := n.header(q, op, a.psn.Add(a.sent))
	p.Syndrome, p.MSN = synAck, q.msn&0xffffff
	if a.length > 0 {
		off := uint64(a.sent) * uint64(q.mtu)
		size := min(uint64(q.mtu), uint64(a.length)-off)
		p.Payload = Payload{one: segment{a.region, a.region.slice(a.addr+off, size)}, n: int(size)}
	}
	n.send(q)
}

// acknowledge sends the acknowledgement that is owed, if any: one for all
// packets since the last. It comes after the answers to READs and atomics.
func (n *NIC) acknowledge(q *QP) {
	switch {
	case q.nakDue != 0:
		p := n.header(q, OpAck, q.recvPSN) // acknowledges what came before, too
		p.Syndrome, p.MSN = q.nakDue, q.msn&0xffffff
	case q.ackDue:
		p := n.header(q, OpAck, before(q.recvPSN))
		p.Syndrome, p.MSN = synAck, q.msn&0xffffff
		n.stats.AcksSent++
	default:
		return
	}
	q.nakDue, q.ackDue = 0, false
	n.send(q)
}

// refuse ends the queue pair because of the packet expected now: the peer gets a
// fatal NAK. A receive that the message consumes gets st; if there is none, an
// event tells of it (IBTA 1.4, 9.9.3).
func (n *NIC) refuse(q *QP, f opFlag, nak Syndrome, st cq.Status, t verbs.EventType) {
	n.settle()
	n.refuseAt(q, q.recvPSN, nak)
	if f&(isSend|hasImm) != 0 && q.rq.una != q.rq.posted() {
		q.recvCause = st
		n.stats.QPErrors++
		n.enterErr(q)
		return
	}
	n.failResponder(q, t)
}

// refuseAt sends a fatal NAK, after the answers to earlier requests.
func (n *NIC) refuseAt(q *QP, psn qp.PSN, nak Syndrome) {
	n.respond(q, 1<<30)
	n.stats.FatalNaksSent++
	p := n.header(q, OpAck, psn)
	p.Syndrome, p.MSN = nak, q.msn&0xffffff
	n.send(q)
}

// before is the PSN one packet earlier.
func before(p qp.PSN) qp.PSN { return p.Add(uint32(qp.PSNMask)) }

// nativeBytes is v as it lies in memory.
func nativeBytes(v uint64, buf *[8]byte) []byte {
	binary.NativeEndian.PutUint64(buf[:], v)
	return buf[:]
}
