//go:build linux

package mlx5dev

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/sim"
)

// Completion queue entries: 64 bytes, the owner bit in the last. A long one has as
// many in front of them.
const (
	entry       = 64
	longEntry   = 128
	indexMask   = 0xffffff // of consumer indexes and object numbers
	entryLast   = 60       // offset of the word with counter and owner
	ownInvalid  = 0xf0     // op_own of an entry never written
	opReq       = 0
	opWriteImm  = 1
	opRecv      = 2
	opRecvImm   = 3
	opRecvInv   = 4
	opResize    = 5
	opReqError  = 13
	opRespError = 14
	inside32    = 4 // bit of the last byte: payload in the entry's first half
	inside64    = 8 // payload in front of the entry
)

// syndromes are what an error entry says, by status.
var syndromes = map[cq.Status]uint8{
	cq.LocalLengthError: 0x01, cq.LocalQPOperationError: 0x02, cq.LocalProtectionError: 0x04, cq.WRFlushError: 0x05, cq.MWBindError: 0x06,
	cq.BadResponseError: 0x10, cq.LocalAccessError: 0x11, cq.RemoteInvalidRequestError: 0x12, cq.RemoteAccessError: 0x13,
	cq.RemoteOperationError: 0x14, cq.RetryExceededError: 0x15, cq.RNRRetryExceededError: 0x16, cq.RemoteAbortedError: 0x22,
}

type armed uint8

const (
	notArmed armed = iota
	armedNext
	armedSolicited
)

// compQueue is the NIC's side of a completion queue.
type compQueue struct {
	dev    *Device
	number uint32
	user   uint64
	core   *sim.CQ
	uidx   bool   // entries name queue pairs by user index
	events int    // descriptor to write events to; 0: none
	async  uint32 // events sent, of the file's goroutine

	mu        sync.Mutex
	ring      []byte
	size      int // bytes an entry
	record    []byte
	next      uint32 // entries written ever
	solicited uint32 // of those, up to the last solicited or failed one
	arm       armed
	sn        uint32  // events sent
	word      [8]byte // an event on its way
}

// write adds an entry for a completion; false: no room.
func (c *compQueue) write(w cq.Completion, recv, solicited bool) bool {
	q := c.dev.queuePair(uint32(w.QPNum))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full() {
		return false
	}
	var long [longEntry]byte
	e := long[longEntry-entry:]
	own := fill(e, &w, recv) << 4
	if q != nil {
		code := uint32(w.ID>>16) & 0xff
		if recv {
			code = 0
		}
		binary.BigEndian.PutUint32(e[56:], code<<24|q.number)
		switch {
		case c.uidx:
			binary.BigEndian.PutUint32(e[32:], q.uidx)
		case recv && q.srq != nil:
			binary.BigEndian.PutUint32(e[32:], q.srq.number)
		}
		if q.inside && recv && w.Status == cq.Success && w.Opcode == cq.Recv {
			own |= q.takeInside(uint32(w.ID), w.ByteLen, long[:longEntry-entry][:c.size-entry], e)
		}
		if recv && q.srq != nil {
			q.srq.completed(uint32(w.ID)) // before: whoever polls may post the slot again at once
		}
	}
	binary.BigEndian.PutUint16(e[entryLast:], uint16(w.ID))
	c.add(long[longEntry-c.size:], own)
	failed := w.Status != cq.Success
	if solicited || failed {
		c.solicited = c.next
	}
	if c.arm == armedNext || c.arm == armedSolicited && (solicited || failed) {
		c.fire()
	}
	return true
}

// full reports that there is no room for an entry. Preconditions: c.mu is held.
func (c *compQueue) full() bool {
	consumed := binary.BigEndian.Uint32(c.record) & indexMask
	return (c.next-consumed)&indexMask >= uint32(len(c.ring)/c.size)
}

// add puts an entry into the ring; its last byte, to which the owner bit is added,
// last. Preconditions: c.mu is held.
func (c *compQueue) add(e []byte, own uint8) {
	slots := uint32(len(c.ring) / c.size)
	n := c.size
	e[n-1] = own | uint8(c.next>>bits.TrailingZeros32(slots)&1)
	to := c.ring[int(c.next%slots)*n:][:n]
	copy(to[:n-4], e)
	atomic.StoreUint32(word(to[n-4:]), binary.NativeEndian.Uint32(e[n-4:]))
	c.next++
}

// resize goes on in another ring, and says so in the old one; false: no room for
// that.
func (c *compQueue) resize(ring []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full() {
		return false
	}
	c.add(make([]byte, c.size), opResize<<4)
	c.ring = ring
	return true
}

// fill writes what does not depend on the queue and gives the entry's opcode.
func fill(e []byte, w *cq.Completion, recv bool) uint8 {
	if w.Status != cq.Success {
		s, ok := syndromes[w.Status]
		if !ok {
			s = 0xff
		}
		e[54], e[55] = uint8(w.VendorErr), s
		if recv {
			return opRespError
		}
		return opReqError
	}
	binary.BigEndian.PutUint32(e[44:], w.ByteLen)
	if !recv {
		return opReq
	}
	if w.Flags&cq.HasGRH != 0 {
		e[24] = 1 << 4
	}
	if w.Flags&(cq.HasImm|cq.HasInvalidate) != 0 {
		binary.BigEndian.PutUint32(e[36:], w.Imm)
	}
	switch {
	case w.Opcode == cq.RecvWriteWithImm:
		return opWriteImm
	case w.Flags&cq.HasInvalidate != 0:
		return opRecvInv
	case w.Flags&cq.HasImm != 0:
		return opRecvImm
	}
	return opRecv
}

// fire sends the event that the queue is armed for. Preconditions: c.mu is held.
func (c *compQueue) fire() {
	c.arm = notArmed
	c.sn++
	if c.events != 0 {
		binary.NativeEndian.PutUint64(c.word[:], c.user)
		unix.Write(c.events, c.word[:])
	}
}

// doorbell is a store of v to the arm register. It gives the rule broken, "" if none.
func (c *compQueue) doorbell(v uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := uint32(v >> 32)
	kind := w >> 24 & 0xf
	switch {
	case w != binary.BigEndian.Uint32(c.record[4:]):
		return "arm doorbell differs from the arm word of the record"
	case kind > 1 || w>>30 != 0:
		return "arm doorbell has unknown bits"
	case (w>>28-c.sn)&3 == 3:
		return "" // of before the last event, which is still to be read
	case (w>>28-c.sn)&3 != 0:
		return "arm doorbell is of another event number"
	}
	c.arm = armedNext
	seen := c.next
	if kind == 1 {
		c.arm, seen = armedSolicited, c.solicited
	}
	if after := (seen - w&indexMask) & indexMask; after != 0 && after < indexMask/2 {
		c.fire()
	}
	return ""
}
