//go:build linux

package mlx5dev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// queuePair is the NIC's side of a queue pair. Its rings are memory of the
// process; the requests run on a queue pair of the simulated NIC below.
type queuePair struct {
	dev    *Device
	number uint32
	uidx   uint32
	user   uint64
	core   qp.QP
	pd     *domain
	sendCQ *compQueue
	recvCQ *compQueue
	srq    *sharedQueue // gives the receives; nil: rq
	inside bool         // short payload goes into completions
	spoil  []qp.SGE     // of the receive whose payload does; the completion queue's lock is held
	async  uint32       // events sent, of the file's goroutine
	addr   uint64       // of the record

	sq struct {
		sync.Mutex
		ring   []byte
		next   uint32 // blocks read ever
		dec    decoder
		one    [1]qp.SendWR
		broken bool // a request broke a rule; nothing is read any more
	}
	rq struct {
		sync.Mutex
		ring   []byte
		shift  uint32
		next   uint32 // receives read ever
		sges   []qp.SGE
		one    [1]qp.RecvWR
		broken bool
	}
	record []byte
}

// counter reads one of the record's two counters.
func (q *queuePair) counter(off int) (uint16, bool) {
	v := binary.BigEndian.Uint32(q.record[off:])
	return uint16(v), v>>16 == 0
}

// send reads what was posted up to the record's counter and runs it. first8 is what
// the doorbell had, copied the bytes that were copied to the register as a whole.
func (q *queuePair) send(first8 uint64, copied []byte) {
	s := &q.sq
	s.Lock()
	defer s.Unlock()
	if s.broken {
		return
	}
	end, ok := q.counter(4)
	blocks := uint32(len(s.ring) / block)
	avail := uint32(end - uint16(s.next))
	if !ok || avail > blocks {
		q.breakSend(cq.LocalQPOperationError, fmt.Sprintf("send counter of the record is %d, %d blocks were read, the ring has %d", end, uint16(s.next), blocks), nil)
		return
	}
	last := uint16(first8>>40) + uint16((uint8(first8)+3)/4) // block index of the doorbell, and its length
	if avail > 0 && last != end {
		q.breakSend(cq.LocalQPOperationError, fmt.Sprintf("doorbell is of the request that ends at block %d, the record says %d", last, end), nil)
		return
	}
	if len(copied) > 0 {
		at := int(uint32(uint16(first8>>40))%blocks) * block
		for i := range copied {
			if copied[i] != s.ring[(at+i)%len(s.ring)] {
				q.breakSend(cq.LocalQPOperationError, fmt.Sprintf("BlueFlame copy differs from the ring at byte %d", i), copied)
				return
			}
		}
	}
	for ; avail > 0; avail = q.left() {
		r, err := s.dec.decode(s.ring, s.next, avail)
		if err != nil {
			q.breakSend(cq.LocalQPOperationError, err.Error(), s.dec.raw)
			return
		}
		r.wr.ID = uint64(uint16(s.next)) | uint64(r.code)<<16
		s.next += r.blocks
		s.one[0] = r.wr
		if _, err := q.core.PostSend(s.one[:]); errors.Is(err, verbs.ErrDeviceLost) {
			s.broken = true
			return
		} else if err != nil {
			q.breakSend(cq.LocalQPOperationError, err.Error(), s.dec.raw)
			return
		}
	}
}

// left is how much of what was posted is to be read.
func (q *queuePair) left() uint32 {
	end, _ := q.counter(4)
	return uint32(end - uint16(q.sq.next))
}

// breakSend stops the queue pair for a request that broke a rule: its error
// completion, then the flushed ones. Preconditions: q.sq is locked.
func (q *queuePair) breakSend(st cq.Status, rule string, raw []byte) {
	q.sq.broken = true
	q.dev.fault(&Fault{Object: fmt.Sprintf("qp %#x", q.number), Rule: rule, Bytes: slices.Clone(raw)})
	q.sendCQ.write(cq.Completion{ID: uint64(uint16(q.sq.next)), Status: st, VendorErr: vendorMalformed, QPNum: cq.QPNum(q.number)}, false, false)
	q.core.Modify(&qp.Attr{State: qp.Err}, qp.MaskState)
}

// vendorMalformed is the vendor syndrome of requests that broke a rule.
const vendorMalformed = 0x6d

// receive reads the receives that were posted up to the record's counter.
func (q *queuePair) receive() {
	r := &q.rq
	r.Lock()
	defer r.Unlock()
	if r.broken {
		return
	}
	end, ok := q.counter(0)
	slots := uint32(len(r.ring)) >> r.shift
	avail := uint32(end - uint16(r.next))
	if !ok || avail > slots {
		q.breakRecv(fmt.Sprintf("receive counter of the record is %d, %d receives were read, the ring has %d", end, uint16(r.next), slots))
		return
	}
	for ; avail > 0; avail-- {
		slot := r.ring[r.next%slots<<r.shift:][:1<<r.shift]
		var err error
		if r.sges, err = decodeRecv(slot, r.sges[:0]); err == nil {
			r.one[0] = qp.RecvWR{ID: uint64(uint16(r.next)), SGEs: r.sges}
			_, err = q.core.PostRecv(r.one[:])
		}
		if errors.Is(err, verbs.ErrDeviceLost) {
			r.broken = true
			return
		}
		if err != nil {
			q.breakRecv(err.Error())
			return
		}
		r.next++
	}
}

func (q *queuePair) breakRecv(rule string) {
	q.rq.broken = true
	q.dev.fault(&Fault{Object: fmt.Sprintf("qp %#x", q.number), Rule: rule})
	q.core.Modify(&qp.Attr{State: qp.Err}, qp.MaskState)
}

// takeInside moves the payload of a completed receive from where the simulated NIC
// put it into its entry, if it is short, and spoils it there: to bring it back is
// for whoever polls. before is what a long entry has in front.
func (q *queuePair) takeInside(index, n uint32, before, e []byte) uint8 {
	in, bit := e[:32], uint8(inside32)
	if len(before) > 0 {
		in, bit = before, inside64
	}
	if n == 0 || int(n) > len(in) {
		return 0
	}
	var slot []byte
	if q.srq != nil {
		slot = q.srq.slot(index)[segment:]
	} else {
		slots := uint32(len(q.rq.ring)) >> q.rq.shift
		slot = q.rq.ring[index%slots<<q.rq.shift:][:1<<q.rq.shift]
	}
	q.spoil, _ = decodeRecv(slot, q.spoil[:0])
	for _, g := range q.spoil {
		m := memory(g.Addr, int(min(g.Length, n)))
		in = in[copy(in, m):]
		n -= uint32(len(m))
		for i := range m {
			m[i] ^= 0xa5
		}
	}
	return bit
}

// reset makes both queues empty.
func (q *queuePair) reset() {
	q.sq.Lock()
	q.sq.next, q.sq.broken = 0, false
	q.sq.Unlock()
	q.rq.Lock()
	q.rq.next, q.rq.broken = 0, false
	q.rq.Unlock()
}
