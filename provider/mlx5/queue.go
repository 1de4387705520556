package mlx5

import (
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
)

// sendQueue posts into a send ring.
type sendQueue struct {
	sendRing
	book     book
	reg      *register
	record   *uint32 // blocks posted, big-endian
	blocks   uint32  // posted ever
	head     uint32  // requests posted ever
	caps     qp.Caps
	max      uint32 // bytes a message, of the port; at most qp.MaxMessage
	noAtomic bool   // the device has no atomics
}

// post posts requests with one doorbell and says how many were taken.
func (s *sendQueue) post(wrs []qp.SendWR) (n int, err error) {
	room := max(s.caps.SendWR-int(s.head-s.book.completed()), 0) // a NIC may complete what it likes
	n, last, units := s.putPlain(wrs[:min(len(wrs), room)])
	if n < len(wrs) {
		n, last, units, err = s.putRest(wrs, n, room, last, units)
	}
	switch {
	case n == 0:
	case s.reg.shared:
		s.reg.ringShared(s, n == 1, last, units, &wrs[n-1])
	default:
		s.reg.ring(s, n == 1, last, units, &wrs[n-1])
	}
	return n, err
}

// putRest goes on where putPlain stopped, with a request of any kind.
func (s *sendQueue) putRest(wrs []qp.SendWR, n, room int, last, units uint32) (int, uint32, uint32, error) {
	for n < len(wrs) {
		w := &wrs[n]
		if err := s.check(w); err != nil {
			return n, last, units, err
		}
		if n >= room {
			return n, last, units, qp.ErrQueueFull
		}
		last = s.blocks
		units = s.put(last, w)
		s.enter(w, last, units)
		n++
		if k, l, u := s.putPlain(wrs[n:max(n, min(len(wrs), room))]); k > 0 {
			n, last, units = n+k, l, u
		}
	}
	return n, last, units, nil
}

func (s *sendQueue) check(w *qp.SendWR) error {
	if err := w.Check(&s.caps); err != nil {
		return err
	}
	if s.noAtomic && w.Opcode.IsAtomic() {
		return qp.ErrOpcode
	}
	if w.Opcode == qp.BindMW && w.Bind.Length > maxBind {
		return qp.ErrBind
	}
	if w.Length() > uint64(s.max) {
		return qp.ErrMessageTooLong
	}
	return nil
}

// enter notes a request that was put, for its completion.
func (s *sendQueue) enter(w *qp.SendWR, block, units uint32) {
	note := uint32(0)
	switch w.Opcode {
	case qp.LocalInv:
		note = uint32(cq.LocalInvalidate)
	case qp.BindMW:
		note = uint32(cq.BindMW)
	}
	s.book.enter(block, w.ID, s.head, note)
	s.blocks += (units + 3) / 4
	s.head++
}

// reset forgets what was posted and not completed.
func (s *sendQueue) reset() {
	s.blocks, s.head, s.fence = 0, 0, 0
	s.book.complete(0)
	mmio.StoreBE32(s.record, 0)
}

// recvQueue posts into a receive ring.
type recvQueue struct {
	b        []byte
	shift    uint // log2 of a slot's bytes
	book     book
	record   *uint32 // receives posted, big-endian
	head     uint32  // receives posted ever
	caps     qp.Caps
	observer Observer
	addr     uint64 // of the doorbell record
}

// post posts receives and says how many were taken. There is no doorbell.
func (r *recvQueue) post(wrs []qp.RecvWR) (n int, err error) {
	room := uint32(r.caps.RecvWR) - (r.head - r.book.completed())
	for n < len(wrs) {
		w := &wrs[n]
		if err = w.Check(&r.caps); err != nil {
			break
		}
		if uint32(n) >= room {
			err = qp.ErrQueueFull
			break
		}
		slot := int(r.head&r.book.mask) << r.shift
		putRecv(r.b[slot:slot+1<<r.shift:slot+1<<r.shift], w)
		r.book.enter(r.head, w.ID, r.head, 0)
		r.head++
		n++
	}
	if n > 0 {
		mmio.WriteBarrier()
		mmio.StoreBE32(r.record, r.head&0xffff)
		if r.observer != nil {
			r.observer.Received(r.addr)
		}
	}
	return n, err
}

// reset forgets what was posted and not completed.
func (r *recvQueue) reset() {
	r.head = 0
	r.book.complete(0)
	mmio.StoreBE32(r.record, 0)
}
