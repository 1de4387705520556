package core

import (
	"time"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// place is a request's number since the chain began, mod 2^32. The difference of two is
// how far apart they are.
type place uint32

// Chain is the queue of send requests of one engine. Its slots are in three runs:
//
//	first        pending      next         first + depth
//	| in flight  | pending    | free        |
//
// In flight are posted requests, pending ones are prepared for the next flush.
// The three add up to the depth at every moment. A slot becomes free only by its
// own or a later completion of the send queue; then it is any chain's of the Scratch.
type Chain struct {
	scratch              *Scratch
	oldest, newest       *slot // from first to next, if there are any
	first, pending, next place
	idHigh               uint32 // the high half of the requests' IDs
	depth                int32
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
	open              pack
}

// NewChain makes a chain of as many slots as a batch has room for.
func NewChain(s *Scratch, idBase uint64) Chain {
	return Chain{scratch: s, idHigh: uint32(idBase >> 32), depth: int32(s.sends.depth)}
}

// InFlight is the number of posted requests.
func (c *Chain) InFlight() int { return int(c.pending - c.first) }

// Pending is the number of prepared requests.
func (c *Chain) Pending() int { return int(c.next - c.pending) }

// Free is the number of free slots.
func (c *Chain) Free() int { return int(c.depth) - int(c.next-c.first) }

// ready reports whether a request may be prepared: a slot is free, and there is one for
// it. If there is none, the chain has some in flight: it is asked again when they complete.
func (c *Chain) ready() bool {
	n := int(c.next - c.first)
	return n < c.scratch.least || n < int(c.depth) && c.scratch.more()
}

// header is the place of the next free slot's control message. The chain is ready.
func (c *Chain) header() *[slotBytes]byte { return c.scratch.free.header }

// PayloadSegments is how many pieces a message may have to go out whole, behind
// its header.
func (c *Chain) PayloadSegments() int { return c.scratch.width - 1 }

// send prepares a SEND of the first n bytes of header(), followed by all of a
// message, if there is one.
func (c *Chain) send(n int, msg *outgoing) {
	wr := c.grow(qp.Send)
	wr.RemoteAddr, wr.RKey = 0, 0
	sges := wr.SGEs[:c.scratch.width]
	at := c.scratch.free
	sges[0] = qp.SGE{Addr: mr.Addr(at.header[:]), Length: uint32(n), LKey: at.lkey}
	wr.SGEs = sges[:1]
	if msg != nil {
		wr.SGEs = sges[:1+msg.whole(sges[1:])]
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
		wr.SGEs = wr.SGEs[:m.gather(wr.SGEs[:c.scratch.width], n)]
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
	b := &c.scratch.sends
	n := len(b.wrs)
	b.wrs = b.wrs[:n+1]
	wr := &b.wrs[n]
	wr.ID, wr.Opcode, wr.Flags, wr.Imm = uint64(c.idHigh)<<32|uint64(c.next), op, 0, 0
	b.open.last = nil
	return wr
}

// take fills the next slot, for a request that was just made.
func (c *Chain) take(wr *qp.SendWR, msg *outgoing, in *incoming, bytes int) {
	b := &c.scratch.sends
	s := c.scratch.pop(c.next - c.first)
	s.msg, s.in, s.bytes, s.at = msg, in, bytes, b.now
	if c.first == c.next {
		c.oldest = s
	} else {
		c.newest.next = s
	}
	s.prev, c.newest = c.newest, s
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
	b := &c.scratch.sends
	if last := &b.wrs[len(b.wrs)-1]; last.Flags&qp.Signaled == 0 {
		last.Flags = qp.Signaled
		b.signaled++
	}
	signaled = b.signaled
	b.signaled, b.quiet, b.quietBytes, b.open.last = 0, 0, 0, nil
	return b.wrs, signaled
}

// flushed says how many of the pending requests the device took. The others
// stay pending; there are none unless posting failed.
func (c *Chain) flushed(n int) {
	c.pending += place(n)
	b := &c.scratch.sends
	b.wrs = b.wrs[:0]
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

// release frees the oldest in-flight slot, and gives it until it is used again.
func (c *Chain) release() *slot {
	s := c.oldest
	c.oldest = s.next
	c.first++
	c.scratch.push(s, c.next-c.first)
	return s
}

// abandon takes the newest pending slot back, nil if there is none; only after a
// failed post.
func (c *Chain) abandon() *slot {
	if c.next == c.pending {
		return nil
	}
	s := c.newest
	c.next--
	c.newest = s.prev
	c.scratch.push(s, c.next-c.first)
	return s
}
