package nic

import (
	"sync/atomic"

	"github.com/byteexpress/byteexpress/qp"
)

// ring holds the indexes that both queues of a queue pair have. The application
// posts at pub, the NIC completes up to una, polling frees up to tail:
//
//	tail <= una <= next <= pub <= tail+cap
type ring struct {
	mask index
	cap  int32
	pub  atomic.Uint32 // end of what was posted; written by the poster
	tail atomic.Uint32 // begin of what is not free; written by the poller
	una  index         // NIC's: first request not completed
	next index         // NIC's: first request not started
}

func (r *ring) init(capacity int) {
	r.mask, r.cap = index(ringSize(capacity)-1), int32(capacity)
}

func (r *ring) posted() index { return index(r.pub.Load()) }

// room is how many requests can be posted.
func (r *ring) room() int { return int(r.cap) - int(r.posted()-index(r.tail.Load())) }

// forget drops everything posted (reset).
func (r *ring) forget() {
	r.una, r.next = r.posted(), r.posted()
	r.tail.Store(uint32(r.una))
}

// sendWQE is a send request in the ring: a line of the cache.
type sendWQE struct {
	id         uint64
	remoteAddr uint64
	compareAdd uint64
	swap       uint64
	length     uint32
	imm        uint32
	rkey       uint32
	op         qp.Opcode
	flags      qp.SendFlags
	nsge       uint8

	// From here on the NIC's, from the first transmission on.
	nseg     uint8
	started  bool
	status   uint8 // a cq.Status: a local fault, to be reported when its turn comes
	firstPSN qp.PSN
	packets  uint32 // PSNs it takes
	got      uint32 // READ: response packets that arrived
}

type sendQueue struct {
	ring
	wqes   []sendWQE
	sges   []qp.SGE // as posted
	segs   []segment
	nsge   int32 // segments a request
	nin    int32 // inline bytes a request
	inline []byte
	binds  []qp.Bind // of BIND_MW
}

func (s *sendQueue) init(c *qp.Caps) {
	s.ring.init(c.SendWR)
	n := int(s.mask) + 1
	nsge := max(c.SendSGE, 1)
	s.nsge, s.nin = int32(nsge), int32(c.Inline)
	s.wqes = make([]sendWQE, n)
	s.sges = make([]qp.SGE, n*nsge)
	s.segs = make([]segment, n*nsge)
	s.inline = make([]byte, n*c.Inline)
	if c.Windows {
		s.binds = make([]qp.Bind, n)
	}
}

func (s *sendQueue) at(i index) *sendWQE { return &s.wqes[i&s.mask] }

// listOf gives the segments of request i as posted: none if it is inline.
func (s *sendQueue) listOf(i index) []qp.SGE { return s.segments(i)[:s.at(i).nsge] }

// segments is the room for them.
func (s *sendQueue) segments(i index) []qp.SGE {
	n := int(s.nsge)
	return s.sges[int(i&s.mask)*n:][:n]
}

// resolved is the room for the same of known memory.
func (s *sendQueue) resolved(i index) []segment {
	n := int(s.nsge)
	return s.segs[int(i&s.mask)*n:][:n]
}

// segsOf gives the resolved segments of request i.
func (s *sendQueue) segsOf(i index) []segment { return s.resolved(i)[:s.at(i).nseg] }

// inlined is the room for the inline bytes of request i.
func (s *sendQueue) inlined(i index) []byte {
	n := int(s.nin)
	return s.inline[int(i&s.mask)*n:][:n]
}

// PostSend copies requests into the send ring, checked, and says how many were
// taken, as qp.QP.PostSend. maxMessage is the port's limit. The driver then rings
// the NIC's doorbell. It belongs to the posting goroutine and does not allocate.
func (q *QP) PostSend(wrs []qp.SendWR, maxMessage uint32) (n int, err error) {
	s := &q.sq
	switch q.State() {
	case qp.RTS, qp.SQD, qp.Err:
	default:
		return 0, qp.ErrState
	}
	head, room := s.posted(), s.room()
	for n < len(wrs) {
		wr := &wrs[n]
		if err = wr.Check(&q.caps); err != nil {
			break
		}
		if n == room {
			err = qp.ErrQueueFull
			break
		}
		length := wr.Length()
		if length > uint64(maxMessage) {
			err = qp.ErrMessageTooLong
			break
		}
		w := s.at(head)
		*w = sendWQE{
			id: wr.ID, remoteAddr: wr.RemoteAddr, compareAdd: wr.CompareAdd, swap: wr.Swap, length: uint32(length),
			imm: wr.Imm, rkey: uint32(wr.RKey), op: wr.Opcode, flags: wr.Flags,
		}
		if wr.Opcode == qp.BindMW {
			s.binds[head&s.mask] = *wr.Bind
		}
		if wr.Flags&qp.Inline != 0 {
			copy(s.inlined(head), wr.Inline)
		} else {
			w.nsge = uint8(copy(s.segments(head), wr.SGEs))
		}
		head++
		n++
	}
	s.pub.Store(uint32(head))
	return n, err
}

// recvWQE is a receive request in the ring.
type recvWQE struct {
	id     uint64
	length uint64
	nsge   uint8
}

type recvQueue struct {
	ring
	wqes []recvWQE
	sges []qp.SGE
	nsge int
}

func (r *recvQueue) init(c *qp.Caps) {
	r.ring.init(c.RecvWR)
	n := int(r.mask) + 1
	r.nsge = max(c.RecvSGE, 1)
	r.wqes = make([]recvWQE, n)
	r.sges = make([]qp.SGE, n*r.nsge)
}

func (r *recvQueue) at(i index) *recvWQE { return &r.wqes[i&r.mask] }

// segments is the room for the segments of request i.
func (r *recvQueue) segments(i index) []qp.SGE {
	at := int(i&r.mask) * r.nsge
	return r.sges[at : at+r.nsge]
}

// PostRecv copies requests into the receive ring, as qp.QP.PostRecv. The driver
// rings the doorbell only if NeedsRecvBell says so.
func (q *QP) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	if q.srq != nil {
		return 0, qp.ErrSharedRecv
	}
	if q.State() == qp.Reset {
		return 0, qp.ErrState
	}
	return q.rq.post(wrs, &q.caps)
}

// post copies requests into the ring as far as they pass their check and fit.
func (r *recvQueue) post(wrs []qp.RecvWR, caps *qp.Caps) (n int, err error) {
	head, room := r.posted(), r.room()
	for n < len(wrs) {
		wr := &wrs[n]
		if err = wr.Check(caps); err != nil {
			break
		}
		if n == room {
			err = qp.ErrQueueFull
			break
		}
		i := int(head & r.mask)
		r.wqes[i] = recvWQE{id: wr.ID, length: wr.Length(), nsge: uint8(len(wr.SGEs))}
		copy(r.sges[i*r.nsge:(i+1)*r.nsge], wr.SGEs)
		head++
		n++
	}
	r.pub.Store(uint32(head))
	return n, err
}

// NeedsRecvBell reports, after PostRecv, that the NIC must be told: the queue
// pair failed, and what was posted is to be flushed.
func (q *QP) NeedsRecvBell() bool { return q.failed.Load() }
