package nic

import (
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// SRQ is a shared receive queue. The NIC moves a receive to the receive queue of
// the queue pair whose message takes it, and with that frees its slot.
type SRQ struct {
	Owner any // the driver's

	recvQueue
	caps  qp.Caps // RecvWR and RecvSGE only
	users int     // queue pairs
	limit int     // 0: not armed
	// In the error state: no message gets a receive, and a queue pair that wants one
	// fails.
	failed bool
}

// CreateSRQ makes a shared receive queue. The capacities were checked against the
// device's limits.
func (n *NIC) CreateSRQ(caps qp.SRQCaps) *SRQ {
	s := &SRQ{caps: qp.Caps{RecvWR: caps.RecvWR, RecvSGE: caps.RecvSGE}}
	s.init(&s.caps)
	return s
}

// Users is the number of queue pairs that take receives here.
func (s *SRQ) Users() int { return s.users }

// Attr gives capacities and limit.
func (s *SRQ) Attr() qp.SRQAttr {
	return qp.SRQAttr{Caps: qp.SRQCaps{RecvWR: s.caps.RecvWR, RecvSGE: s.caps.RecvSGE}, Limit: s.limit}
}

// PostRecv copies requests into the ring, as qp.SRQ.PostRecv. It belongs to the
// posting goroutine and runs beside the NIC.
func (s *SRQ) PostRecv(wrs []qp.RecvWR) (n int, err error) { return s.post(wrs, &s.caps) }

// FailSRQ takes a shared receive queue to the error state, with its event.
func (n *NIC) FailSRQ(s *SRQ) {
	if !s.failed {
		s.failed = true
		n.event(Event{Type: verbs.EventSRQError, SRQ: s})
	}
}

// Arm sets the limit, as qp.SRQ.Arm.
func (s *SRQ) Arm(limit int) error {
	if err := s.Attr().Caps.CheckLimit(limit); err != nil {
		return err
	}
	s.limit = limit
	return nil
}

// take moves the oldest receive of q's SRQ to q, and reports whether there was one
// (IBTA 1.4, 10.2.9).
func (n *NIC) take(q *QP) bool {
	s := q.srq
	if s.una == s.posted() {
		return false
	}
	from, to := s.una, q.rq.posted()
	*q.rq.at(to) = *s.at(from)
	copy(q.rq.segments(to), s.segments(from))
	q.rq.pub.Store(uint32(to + 1))
	s.una++
	s.tail.Store(uint32(s.una))
	if left := int(s.posted() - s.una); left < s.limit {
		s.limit = 0
		n.event(Event{Type: verbs.EventSRQLimit, SRQ: s})
	}
	return true
}
