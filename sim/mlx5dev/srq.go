//go:build linux

package mlx5dev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// sharedQueue is the NIC's side of a shared receive queue: slots of a list, of
// which each begins with the number of the next.
type sharedQueue struct {
	dev    *Device
	number uint32
	user   uint64
	core   qp.SRQ
	pd     *domain
	async  uint32 // events sent, of the file's goroutine
	addr   uint64 // of the record

	mu     sync.Mutex
	ring   []byte
	shift  uint32
	record []byte
	next   uint32 // slot that the NIC reads next
	read   uint32 // receives read ever
	had    []bool // slots that the NIC has
	out    uint32 // how many those are
	sges   []qp.SGE
	one    [1]qp.RecvWR
	broken bool
}

// slot is the memory of a slot.
func (s *sharedQueue) slot(i uint32) []byte {
	return s.ring[i<<s.shift : (i+1)<<s.shift]
}

// receive reads the receives that were posted up to the record's counter.
func (s *sharedQueue) receive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return
	}
	w := binary.BigEndian.Uint32(s.record)
	avail := uint32(uint16(w) - uint16(s.read))
	slots := uint32(len(s.had))
	if w>>16 != 0 || avail+s.out >= slots {
		s.stop(fmt.Sprintf("counter of the record is %#x, %d receives were read and %d are not taken, the list has %d slots", w, uint16(s.read), s.out, slots), nil)
		return
	}
	for ; avail > 0; avail-- {
		b := s.slot(s.next)
		next := uint32(binary.BigEndian.Uint16(b[2:]))
		var err error
		switch {
		case s.had[s.next]:
			err = fmt.Errorf("slot %d is in the list again before its receive completed", s.next)
		case next >= slots:
			err = fmt.Errorf("the slot after %d is %d, there are %d", s.next, next, slots)
		case b[0] != 0 || b[1] != 0 || !zero(b[4:segment]):
			err = fmt.Errorf("reserved bytes of slot %d are not 0", s.next)
		default:
			s.sges, err = decodeRecv(b[segment:], s.sges[:0])
		}
		if err == nil {
			s.one[0] = qp.RecvWR{ID: uint64(s.next), SGEs: s.sges}
			s.had[s.next] = true // before: a message may wait for it
			s.out++
			_, err = s.core.PostRecv(s.one[:])
		}
		if errors.Is(err, verbs.ErrDeviceLost) {
			s.broken = true
			return
		}
		if err != nil {
			s.stop(err.Error(), b)
			return
		}
		s.next = next
		s.read++
	}
}

// stop keeps the rule that was broken; nothing is read any more. Preconditions: s.mu
// is held.
func (s *sharedQueue) stop(rule string, slot []byte) {
	s.broken = true
	s.dev.fault(&Fault{Object: fmt.Sprintf("srq %#x", s.number), Rule: rule, Bytes: slices.Clone(slot), Receive: true})
}

// completed says that a receive's completion is written: its slot may come again.
func (s *sharedQueue) completed(i uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.had[i] {
		s.had[i] = false
		s.out--
	}
}
