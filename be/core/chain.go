package core

import (
	"math/bits"
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// slotBytes is the room for one control message in the chain's registered slab:
// MaxControl, rounded up to a multiple of 64 so that no two share a cache line.
const slotBytes = (wire.MaxControl + 63) &^ 63

// slot is what the chain remembers of one request until it completes.
type slot struct {
	msg   *outgoing     // the message that the request belongs to; nil: control, or a READ of get mode
	in    *incoming     // the message that a READ of get mode belongs to
	bytes int           // of the send window
	at    time.Duration // when it was prepared
}

// place is a request's number since the chain began, mod 2^32. The difference of two is
// how far apart they are.
type place uint32

// Chain is the ring of send requests of one engine. Its slots are in three runs:
//
//	first        pending      next         first + depth
//	| in flight  | pending    | free        |
//
// In flight are posted requests, pending ones are prepared for the next flush.
// The three add up to the depth at every moment. A slot becomes free only by its
// own or a later completion of the send queue.
type Chain struct {
	slots                []slot // a power of two of them, at least depth
	slab                 []byte // a control message's place for each slot
	batch                *batch
	first, pending, next place
	origin               place  // whose slot is, or would be, the first
	idHigh               uint32 // the high half of the requests' IDs
	depth                int32
	width                int32 // segments of a request at most
	lkey                 mr.LKey
}

// batch is the pending requests of a chain, in order, each with its own segments. Chains
// of one goroutine share one: but for a flush it is empty.
type batch struct {
	wrs               []qp.SendWR
	depth             int           // how many it has room for
	now               time.Duration // of the requests that are prepared
	every             int           // bytes after which one is signaled
	quiet, quietBytes int           // requests after the last signaled one, and their bytes
	signaled          int           // requests that are
}

// NewChain makes a chain of as many slots as a batch has room for, each with up to width
// segments, at least two. slab has slabBytes of them of registered memory.
func NewChain(b *batch, width int, slab []byte, lkey mr.LKey, idBase uint64) Chain {
	c := Chain{slots: make([]slot, ringSize(b.depth)), slab: slab, batch: b, idHigh: uint32(idBase >> 32), depth: int32(b.depth), width: int32(width), lkey: lkey}
	c.restart()
	return c
}

// restart has an empty chain begin with its home slot: with a thousand chains that have a
// message now and then, each needs that one in the cache, instead of all in turn. Where
// home is depends on the driver's number of the chain: slots and slab are likely to begin
// a page, and the first lines of all pages have few places in a cache.
func (c *Chain) restart() { c.origin = c.next - place(c.idHigh) }

// ringSize is the least power of two that is n or more: places in a ring are then
// found without a division.
func ringSize(n int) int { return 1 << bits.Len(uint(n-1)) }

func slabBytes(depth int) int { return ringSize(depth) * slotBytes }

// InFlight is the number of posted requests.
func (c *Chain) InFlight() int { return int(c.pending - c.first) }

// Pending is the number of prepared requests.
func (c *Chain) Pending() int { return int(c.next - c.pending) }

// Free is the number of free slots.
func (c *Chain) Free() int { return int(c.depth) - int(c.next-c.first) }

// at is the number of a request's slot.
func (c *Chain) at(p place) int { return int(p-c.origin) & (len(c.slots) - 1) }

// header is the place of the next free slot's control message.
func (c *Chain) header() []byte {
	i := c.at(c.next) * slotBytes
	return c.slab[i : i+slotBytes : i+slotBytes]
}

// PayloadSegments is how many pieces a message may have to go out whole, behind
// its header.
func (c *Chain) PayloadSegments() int { return int(c.width) - 1 }

// send prepares a SEND of the first n bytes of header(), followed by all of a
// message, if there is one.
func (c *Chain) send(n int, msg *outgoing) {
	wr := c.grow(qp.Send)
	wr.RemoteAddr, wr.RKey = 0, 0
	sges := wr.SGEs[:2]
	sges[0] = qp.SGE{Addr: mr.Addr(c.header()), Length: uint32(n), LKey: c.lkey}
	switch {
	case msg == nil || msg.length == 0:
		wr.SGEs = wr.SGEs[:1]
	case len(msg.pieces) == 1:
		sges[1] = msg.pieces[0]
		wr.SGEs = wr.SGEs[:2]
	default:
		wr.SGEs = wr.SGEs[:1+msg.gather(wr.SGEs[1:c.width], msg.length)]
	}
	c.take(wr, msg, nil, 0)
}

// write prepares a WRITE of the next n bytes of a message, or fewer if they are
// in too many pieces; the last one is with the immediate.
func (c *Chain) write(m *outgoing, n int) (bytes int, final bool) {
	wr := c.grow(qp.Write)
	from := m.offset
	wr.RemoteAddr, wr.RKey = m.addr+uint64(from), m.rkey
	if len(m.pieces) == 1 && n > 0 {
		p := &m.pieces[0]
		wr.SGEs = wr.SGEs[:1]
		wr.SGEs[0] = qp.SGE{Addr: p.Addr + uint64(from), Length: uint32(n), LKey: p.LKey}
		m.offset += n
	} else {
		wr.SGEs = wr.SGEs[:m.gather(wr.SGEs[:c.width], n)]
		n = m.offset - from
	}
	if m.offset == m.length {
		wr.Opcode, wr.Imm, final = qp.WriteWithImm, m.imm, true
	}
	c.take(wr, m, nil, n)
	return n, final
}

// read prepares a READ of the next n bytes of a message that the peer offered.
func (c *Chain) read(in *incoming, n int) {
	wr := c.grow(qp.Read)
	wr.RemoteAddr, wr.RKey = in.addr+uint64(in.offset), in.rkey
	wr.SGEs = wr.SGEs[:1]
	wr.SGEs[0] = qp.SGE{Addr: mr.Addr(in.buf) + uint64(in.offset), Length: uint32(n), LKey: in.lkey}
	in.offset += n
	in.refs++
	c.take(wr, nil, in, n)
}

// fetch prepares a READ of the next n bytes of memory that the peer exposed.
func (c *Chain) fetch(m *outgoing, n int) {
	wr := c.grow(qp.Read)
	wr.RemoteAddr, wr.RKey = m.addr+uint64(m.offset), m.rkey
	wr.SGEs = wr.SGEs[:1]
	p := &m.pieces[0]
	wr.SGEs[0] = qp.SGE{Addr: p.Addr + uint64(m.offset), Length: uint32(n), LKey: p.LKey}
	m.offset += n
	m.refs++
	c.take(wr, m, nil, n)
}

// grow gives a request at the end of the batch, whose remote memory and segments
// are an older one's. The other fields are never set.
func (c *Chain) grow(op qp.Opcode) *qp.SendWR {
	b := c.batch
	n := len(b.wrs)
	b.wrs = b.wrs[:n+1]
	wr := &b.wrs[n]
	wr.ID, wr.Opcode, wr.Flags, wr.Imm = uint64(c.idHigh)<<32|uint64(c.next), op, 0, 0
	return wr
}

// take fills the next slot, for a request that was just made.
func (c *Chain) take(wr *qp.SendWR, msg *outgoing, in *incoming, bytes int) {
	b, s := c.batch, &c.slots[c.at(c.next)]
	s.msg, s.in, s.bytes, s.at = msg, in, bytes, b.now
	c.next++
	b.quiet++
	b.quietBytes += bytes
	if b.quiet >= int(c.depth)/2 || bytes > 0 && b.quietBytes >= b.every {
		wr.Flags = qp.Signaled
		b.signaled++
		b.quiet, b.quietBytes = 0, 0
	}
}

// flush gives the pending requests for one post, and how many of them are
// signaled: the last, and one at least every half depth and every so many bytes, so
// that neither slots nor the window come back all at once. A window that did would
// leave the wire idle for a round trip each time.
func (c *Chain) flush() (wrs []qp.SendWR, signaled int) {
	b := c.batch
	if last := &b.wrs[len(b.wrs)-1]; last.Flags&qp.Signaled == 0 {
		last.Flags = qp.Signaled
		b.signaled++
	}
	signaled = b.signaled
	b.signaled, b.quiet, b.quietBytes = 0, 0, 0
	return b.wrs, signaled
}

// flushed says how many of the pending requests the device took. The others
// stay pending; there are none unless posting failed.
func (c *Chain) flushed(n int) {
	c.pending += place(n)
	c.batch.wrs = c.batch.wrs[:0]
}

// completed gives the number of in-flight slots that a completion with this ID
// frees, 0 if none of them has it.
func (c *Chain) completed(id uint32) int {
	n := int(id-uint32(c.first)) + 1
	if n > c.InFlight() {
		return 0
	}
	return n
}

// inFlight is the slot of the i-th oldest request in flight.
func (c *Chain) inFlight(i int) *slot { return &c.slots[c.at(c.first+place(i))] }

// release frees the oldest in-flight slot, and gives it until it is used again.
func (c *Chain) release() *slot {
	s := &c.slots[c.at(c.first)]
	if c.first++; c.first == c.next {
		c.restart()
	}
	return s
}

// abandon takes the newest pending slot back, nil if there is none; only after a
// failed post.
func (c *Chain) abandon() *slot {
	if c.next == c.pending {
		return nil
	}
	c.next--
	return &c.slots[c.at(c.next)]
}
