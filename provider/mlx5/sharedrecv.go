package mlx5

import (
	"sync"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
)

// sharedRecv is a shared receive queue's memory. Its slots are a list: each begins
// with the number of the next, which the NIC follows from slot 0 on, so they are
// given back in any order. The last slot of the list is never posted: the one
// before it must say where the list goes on, and a slot given back is put behind it.
type sharedRecv struct {
	b        []byte
	shift    uint    // log2 of a slot's bytes
	record   *uint32 // receives posted, big-endian
	caps     qp.Caps // the receive side's
	observer Observer
	addr     uint64 // of the doorbell record

	mu         sync.Mutex // one posts, and whoever polls gives back
	book       book       // the opcode of a slot that the NIC has is 1
	head, tail uint32     // next slot to post, and last of the list
	posted     uint32     // receives posted ever
}

// link makes a list of all slots, from 0 on.
func (s *sharedRecv) link() {
	for i := range s.book.mask + 1 {
		nextIndex.Put(s.slot(i), uint16(i+1))
	}
	s.head, s.tail = 0, s.book.mask
}

func (s *sharedRecv) slot(i uint32) []byte {
	off := int(i&s.book.mask) << s.shift
	return s.b[off : off+1<<s.shift : off+1<<s.shift]
}

// segments are those of a receive that completed and is not given back yet.
func (s *sharedRecv) segments(i uint32) []byte { return s.slot(i)[nextSize:] }

// post posts receives and says how many were taken. There is no doorbell.
func (s *sharedRecv) post(wrs []qp.RecvWR) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(wrs) {
		w := &wrs[n]
		if err = w.Check(&s.caps); err != nil {
			break
		}
		if s.head == s.tail {
			err = qp.ErrQueueFull
			break
		}
		slot := s.slot(s.head)
		putRecv(slot[nextSize:], w)
		s.book.enter(s.head, w.ID, 0, 1)
		s.head = uint32(nextIndex.Get(slot)) & s.book.mask
		n++
	}
	if n > 0 {
		s.posted += uint32(n)
		mmio.WriteBarrier()
		mmio.StoreBE32(s.record, s.posted&0xffff)
		if s.observer != nil {
			s.observer.Received(s.addr)
		}
	}
	return n, err
}

// retire gives a slot back, if the NIC had it, and its request's id.
func (s *sharedRecv) retire(i uint32) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	i &= s.book.mask
	id := s.book.id(i)
	if s.book.opcode(i) == 0 {
		return id
	}
	s.book.enter(i, id, 0, 0)
	nextIndex.Put(s.slot(s.tail), uint16(i))
	s.tail = i
	return id
}
