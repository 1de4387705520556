package nic

import (
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// responder is the receiving half of a queue pair.
type responder struct {
	recvPSN  qp.PSN // expected
	msn      uint32 // messages completed
	kind     opFlag // of the message under way, of several packets: isSend, isWrite, 0: none
	talked   bool   // a packet came: the connection is established
	ackDue   bool
	nakDue   Syndrome // RNR or sequence error; 0: none
	nakSent  bool     // silent until the expected packet comes
	lastTold bool     // LAST_WQE_REACHED was sent: the queue pair takes no receive any more

	got       uint64 // bytes of the message that were placed
	length    uint64 // WRITE: bytes in all
	addr      uint64
	rkey      mr.RKey
	recvCause cq.Status
	recvLen   uint64    // SEND: the receive's length
	segs      []segment // and memory
}

// answer is a READ or atomic that is answered.
type answer struct {
	psn    qp.PSN
	atomic bool
	old    uint64  // atomic: the value before
	region *Region // READ
	addr   uint64
	length uint32
	sent   uint32 // READ: packets sent
}

func (q *QP) startResponder() {
	q.responder = responder{
		recvPSN: q.attr.RecvPSN,
		segs:    make([]segment, 0, q.rq.nsge),
	}
	q.pending = make([]answer, 0, int(q.attr.MaxDestReads)+1)
	q.replay = make([]answer, 0, int(q.attr.MaxDestReads)+1)
}

// request handles a packet of a request (IBTA 1.4, 9.7.3 and 9.7.4).
func (n *NIC) request(q *QP, p *Packet, f opFlag) {
	if !q.talked {
		q.talked = true
		if q.state == qp.RTR {
			n.qpEvent(q, verbs.EventCommEstablished)
		}
	}
	switch d := p.PSN.Sub(q.recvPSN); {
	case d < 0:
		n.duplicate(q, p, f)
		return
	case d > 0:
		if !q.nakSent {
			q.nakSent, q.nakDue = true, nakPSN
			n.stats.SeqNaksSent++
			n.wake(q)
		}
		return
	}
	q.nakSent, q.nakDue = false, 0
	if p.AckReq {
		q.ackDue = true
	}
	n.wake(q)
	if (f&starts != 0) != (q.kind == 0) || q.kind != 0 && f&q.kind == 0 {
		n.refuse(q, f, nakInvalid, cq.LocalQPOperationError, verbs.EventQPRequestError)
		return
	}
	if !q.sizeFits(p, f) {
		n.refuse(q, f, nakInvalid, cq.LocalLengthError, verbs.EventQPRequestError)
		return
	}
	switch {
	case f&isSend != 0:
		n.takeSend(q, p, f)
	case f&isWrite != 0:
		n.takeWrite(q, p, f)
	default:
		n.takeResponding(q, p, f)
	}
}

// sizeFits checks a packet's payload against the path MTU (IBTA 1.4, 9.7.4.1.6).
// Where messages are not segmented, a message that two sides with different path
// MTUs would have cut differently is refused, as it would be then.
func (q *QP) sizeFits(p *Packet, f opFlag) bool {
	size := p.Payload.Len()
	switch {
	case f&(isSend|isWrite) == 0:
		return size == 0
	case f&ends == 0:
		return size == q.mtu
	case f&starts == 0 && size == 0:
		return false
	case p.MTU != 0 && p.MTU != q.attr.PathMTU && q.mtu == unlimited:
		return size <= min(p.MTU.Bytes(), q.attr.PathMTU.Bytes())
	}
	return size <= q.mtu
}

// takeSend places a packet of a SEND in the receive that it consumes.
func (n *NIC) takeSend(q *QP, p *Packet, f opFlag) {
	if f&starts != 0 {
		if !n.nextRecv(q) {
			return
		}
		if !n.resolveRecv(q) {
			n.refuse(q, f, nakRemote, cq.LocalProtectionError, verbs.EventQPFatal)
			return
		}
		q.got = 0
	}
	size := uint64(p.Payload.Len())
	if size > q.recvLen-q.got {
		n.refuse(q, f, nakInvalid, cq.LocalLengthError, verbs.EventQPFatal)
		return
	}
	for i := range q.segs {
		if q.segs[i].region.isRevoked() {
			n.refuse(q, f, nakRemote, cq.LocalProtectionError, verbs.EventQPFatal)
			return
		}
	}
	if f&invalidates != 0 && !n.mayInvalidate(q, p.RKey) {
		n.refuse(q, f, nakAccess, cq.RemoteInvalidRequestError, verbs.EventQPAccessError)
		return
	}
	d := scatter{segs: q.segs}
	d.seek(int(q.got))
	if !n.place(&d, p.Payload) {
		return // as good as lost
	}
	q.recvPSN = q.recvPSN.Add(1)
	q.got += size
	q.kind = isSend
	if f&ends != 0 {
		if f&invalidates != 0 {
			n.invalidate(q, p.RKey)
		}
		q.kind = 0
		q.msn++
		n.received(q, p, f, cq.Recv, q.got)
	}
}

// nextRecv makes sure that the oldest receive is there for the message, or owes
// the peer an RNR NAK.
func (n *NIC) nextRecv(q *QP) bool {
	if q.rq.una != q.rq.posted() || q.srq != nil && !q.srq.failed && n.take(q) {
		return true
	}
	if q.srq != nil && q.srq.failed {
		n.refuse(q, 0, nakRemote, cq.LocalQPOperationError, verbs.EventQPFatal)
		return false
	}
	n.stats.RNRNaksSent++
	q.nakSent, q.nakDue = true, synRNR|Syndrome(q.attr.RNRTimer&31)
	return false
}

// resolveRecv looks up the memory of the oldest receive.
func (n *NIC) resolveRecv(q *QP) bool {
	w := q.rq.at(q.rq.una)
	q.segs, q.recvLen = q.segs[:0], w.length
	for _, g := range q.rq.segments(q.rq.una)[:w.nsge] {
		if g.Length == 0 {
			continue
		}
		seg, ok := n.local(q.pd, g.LKey, g.Addr, g.Length, true)
		if !ok {
			return false
		}
		q.segs = append(q.segs, seg)
	}
	return true
}

// takeWrite places a packet of a WRITE.
func (n *NIC) takeWrite(q *QP, p *Packet, f opFlag) {
	if q.attr.Access&mr.RemoteWrite == 0 {
		n.refuse(q, f, nakInvalid, cq.LocalQPOperationError, verbs.EventQPAccessError)
		return
	}
	if f&starts != 0 {
		q.got, q.addr, q.rkey, q.length = 0, p.Addr, p.RKey, uint64(p.Length)
	}
	size := uint64(p.Payload.Len())
	if left := q.length - q.got; size > left || f&ends != 0 && size != left || q.length > qp.MaxMessage {
		n.refuse(q, f, nakInvalid, cq.LocalLengthError, verbs.EventQPRequestError)
		return
	}
	if f&hasImm != 0 && !n.nextRecv(q) {
		return
	}
	var to *Region
	if q.length > 0 {
		if to = n.remote(q, q.rkey, q.addr, q.length, mr.RemoteWrite); to == nil {
			n.refuse(q, f, nakAccess, cq.LocalAccessError, verbs.EventQPAccessError)
			return
		}
	}
	if n.cfg.SkipWrites {
		n.stats.BytesReceived += size
	} else if !n.placeWrite(q, &p.Payload, to, q.addr+q.got) {
		return // as good as lost
	}
	q.recvPSN = q.recvPSN.Add(1)
	q.got += size
	q.kind = isWrite
	if f&ends != 0 {
		q.kind = 0
		q.msn++
		if f&hasImm != 0 {
			n.received(q, p, f, cq.RecvWriteWithImm, q.length)
		}
	}
}

// received completes the oldest receive with a message.
func (n *NIC) received(q *QP, p *Packet, f opFlag, op cq.Opcode, length uint64) {
	n.settle()
	c := cq.Completion{Opcode: op, ByteLen: uint32(length)}
	switch {
	case f&hasImm != 0:
		c.Flags, c.Imm = cq.HasImm, p.Imm
	case f&invalidates != 0:
		c.Flags, c.Imm = cq.HasInvalidate, uint32(p.RKey)
	}
	n.completeRecv(q, c, p.Solicited)
}

// place makes the one copy of a message's bytes.
func (n *NIC) place(d *scatter, p Payload) bool {
	d.dma = &n.dma
	ok, idle := p.copyTo(d)
	if idle {
		n.fabric.Ring(n, p.lease.q)
	}
	if ok {
		n.stats.BytesReceived += uint64(p.n)
	} else {
		n.stats.RevokedPayloads++
	}
	return ok
}
