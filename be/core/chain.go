package core

import (
	"math"
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
	msg   *outgoing     // the message that the request belongs to; nil: control, or a READ
	in    *incoming     // the message that a READ belongs to
	bytes int           // of the send window
	at    time.Duration // when it was prepared
}

// Chain is the ring of send requests of one engine. Its slots are in three runs:
//
//	first        pending      next         first + depth
//	| in flight  | pending    | free        |
//
// In flight are posted requests, pending ones are prepared for the next flush.
// The three add up to the depth at every moment. A slot becomes free only by its
// own or a later completion of the send queue.
type Chain struct {
	slots                []slot
	first, pending, next uint64
	batch                []qp.SendWR // the pending requests, in order
	sges                 []qp.SGE    // width of them for each slot
	width                int
	slab                 []byte // a control message's place for each slot
	lkey                 mr.LKey
	idBase               uint64
	now                  time.Duration // of the requests that are prepared
	every                int           // bytes after which one is signaled
	quiet, quietBytes    int           // pending requests after the last signaled one, and their bytes
	signaled             int           // pending requests that are
}

// NewChain makes a chain of depth slots, each with up to width segments, at least
// two. slab has slabBytes(depth) bytes of registered memory.
func NewChain(depth, width int, slab []byte, lkey mr.LKey, idBase uint64) *Chain {
	return &Chain{
		slots: make([]slot, depth), batch: make([]qp.SendWR, 0, depth), sges: make([]qp.SGE, depth*width), width: width,
		slab: slab, lkey: lkey, idBase: idBase, every: math.MaxInt,
	}
}

func slabBytes(depth int) int { return depth * slotBytes }

// InFlight is the number of posted requests.
func (c *Chain) InFlight() int { return int(c.pending - c.first) }

// Pending is the number of prepared requests.
func (c *Chain) Pending() int { return int(c.next - c.pending) }

// Free is the number of free slots.
func (c *Chain) Free() int { return len(c.slots) - int(c.next-c.first) }

// header is the place of the next free slot's control message.
func (c *Chain) header() []byte {
	i := int(c.next%uint64(len(c.slots))) * slotBytes
	return c.slab[i : i+slotBytes : i+slotBytes]
}

// segments is the place of the next free slot's segments.
func (c *Chain) segments() []qp.SGE {
	i := int(c.next%uint64(len(c.slots))) * c.width
	return c.sges[i : i+c.width : i+c.width]
}

// PayloadSegments is how many pieces a message may have to go out whole, behind
// its header.
func (c *Chain) PayloadSegments() int { return c.width - 1 }

// send prepares a SEND of the first n bytes of header(), followed by all of a
// message, if there is one.
func (c *Chain) send(n int, msg *outgoing) {
	sges := c.segments()
	sges[0] = qp.SGE{Addr: mr.Addr(c.header()), Length: uint32(n), LKey: c.lkey}
	used := 1
	if msg != nil {
		k, _ := msg.gather(sges[1:], msg.length)
		used += k
	}
	wr := c.grow()
	wr.Opcode, wr.SGEs = qp.Send, sges[:used]
	c.take(slot{msg: msg})
}

// write prepares a WRITE of the next n bytes of a message, or fewer if they are
// in too many pieces; the last one is with the immediate.
func (c *Chain) write(m *outgoing, n int) (bytes int, final bool) {
	sges := c.segments()
	addr := m.addr + uint64(m.offset)
	k, bytes := m.gather(sges, n)
	final = m.offset == m.length
	wr := c.grow()
	wr.Opcode, wr.RemoteAddr, wr.RKey, wr.SGEs = qp.Write, addr, m.rkey, sges[:k]
	if final {
		wr.Opcode, wr.Imm = qp.WriteWithImm, m.imm
	}
	c.take(slot{msg: m, bytes: bytes})
	return bytes, final
}

// read prepares a READ of the next n bytes of a message that the peer offered.
func (c *Chain) read(in *incoming, n int) {
	sges := c.segments()
	sges[0] = qp.SGE{Addr: mr.Addr(in.buf) + uint64(in.offset), Length: uint32(n), LKey: in.lkey}
	wr := c.grow()
	wr.Opcode, wr.RemoteAddr, wr.RKey, wr.SGEs = qp.Read, in.addr+uint64(in.offset), in.rkey, sges[:1]
	in.offset += n
	in.refs++
	c.take(slot{in: in, bytes: n})
}

// grow gives a zero request at the end of the batch.
func (c *Chain) grow() *qp.SendWR {
	c.batch = c.batch[:len(c.batch)+1]
	wr := &c.batch[len(c.batch)-1]
	*wr = qp.SendWR{ID: c.idBase | uint64(uint32(c.next))}
	return wr
}

func (c *Chain) take(s slot) {
	s.at = c.now
	c.slots[c.next%uint64(len(c.slots))] = s
	c.next++
	c.quiet++
	c.quietBytes += s.bytes
	if 2*c.quiet+1 >= len(c.slots) || c.quietBytes >= c.every {
		c.batch[len(c.batch)-1].Flags |= qp.Signaled
		c.signaled++
		c.quiet, c.quietBytes = 0, 0
	}
}

// flush gives the pending requests for one post, and how many of them are
// signaled: the last, and one at least every half depth and every so many bytes, so
// that neither slots nor the window come back all at once. A window that did would
// leave the wire idle for a round trip each time.
func (c *Chain) flush() (wrs []qp.SendWR, signaled int) {
	if last := &c.batch[len(c.batch)-1]; last.Flags&qp.Signaled == 0 {
		last.Flags |= qp.Signaled
		c.signaled++
	}
	signaled = c.signaled
	c.signaled, c.quiet, c.quietBytes = 0, 0, 0
	return c.batch, signaled
}

// flushed says how many of the pending requests the device took. The others
// stay pending; there are none unless posting failed.
func (c *Chain) flushed(n int) {
	c.pending += uint64(n)
	c.batch = c.batch[:0]
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
func (c *Chain) inFlight(i int) *slot { return &c.slots[(c.first+uint64(i))%uint64(len(c.slots))] }

// release frees the oldest in-flight slot.
func (c *Chain) release() slot {
	p := &c.slots[c.first%uint64(len(c.slots))]
	s := *p
	*p = slot{}
	c.first++
	return s
}

// abandon takes the newest pending slot back; only after a failed post.
func (c *Chain) abandon() (slot, bool) {
	if c.next == c.pending {
		return slot{}, false
	}
	c.next--
	p := &c.slots[c.next%uint64(len(c.slots))]
	s := *p
	*p = slot{}
	return s, true
}
