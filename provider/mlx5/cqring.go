package mlx5

import (
	"errors"
	"math/bits"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
)

// An entry of 128 bytes has the 64 that say what completed in its second half. The
// first half has payload, or nothing.
const longEntry = 128

// The two bits of an entry's last byte that tell its format: both are set in one
// that stands for several.
const (
	formatMask       = cqeInline32 | cqeInline64
	formatCompressed = formatMask
)

// errCompressed is what polling ends with at an entry that stands for several.
// Nobody asked for such; nothing after it can be told apart.
var errCompressed = errors.New("mlx5: the NIC compressed completions, which was not asked for: close the completion queue")

// cqRing is a completion queue's memory, of a power of two of entries.
type cqRing struct {
	b      []byte
	mask   uint32
	shift  uint    // log2 of an entry's bytes: 6 or 7
	next   uint32  // entries consumed ever
	uidx   bool    // entries name queue pairs by user index, else by number
	record *uint32 // word of the doorbell record: entries consumed, big-endian
	last   *ends   // of the last entry
	broken bool    // an entry was compressed
}

// newCQRing lays entries of 64 or 128 bytes out in memory and makes each one that
// the NIC has not written.
func newCQRing(b []byte, entry int, uidx bool, record *uint32) cqRing {
	c := cqRing{b: b, mask: uint32(len(b)/entry - 1), shift: uint(bits.TrailingZeros(uint(entry))), uidx: uidx, record: record}
	for off := entry - 1; off < len(b); off += entry {
		b[off] = cqeInvalid << 4
	}
	return c
}

// slot is the whole entry at a position.
func (c *cqRing) slot(at uint32) []byte {
	off := int(at&c.mask) << c.shift
	return c.b[off : off+1<<c.shift : off+1<<c.shift]
}

// pending gives the entry at a position and its last byte, if the NIC has written it.
func (c *cqRing) pending(at uint32) (e []byte, own uint8, ok bool) {
	end := int(at&c.mask+1) << c.shift
	e = c.b[end-cqeSize : end : end]
	own = cqeOpOwn.Get(e)
	lap := at&(c.mask+1) != 0
	return e, own, own>>4 != cqeInvalid && (own&cqeOwnerMask != 0) == lap
}

// waiting is the number of entries that the NIC has written and nobody consumed.
func (c *cqRing) waiting() (n int) {
	for uint32(n) <= c.mask {
		if _, _, ok := c.pending(c.next + uint32(n)); !ok {
			break
		}
		n++
	}
	return n
}

// payload is where an entry with payload inside has it: in its first 32 bytes, or
// in the other 64 bytes of a long one.
func (c *cqRing) payload(e []byte, own uint8) []byte {
	if own&cqeInline32 != 0 {
		return e[:32]
	}
	return c.slot(c.next)[:1<<c.shift-cqeSize]
}

// owner gives the number by which an entry names its queue pair.
func (c *cqRing) owner(e []byte) uint32 {
	if c.uidx {
		return cqeSRQNUIDX.Get(e) & numberMask
	}
	return cqeSopDropQPN.Get(e) & numberMask
}

// poll moves completions into dst. Entries of queue pairs that find does not know
// are of ones that were closed, and are passed over.
func (c *cqRing) poll(dst []cq.Completion, find func(uint32) *ends) (n int) {
	start := c.next
	for n < len(dst) {
		e, own, ok := c.pending(c.next)
		if !ok {
			break
		}
		mmio.ReadBarrier()
		if own&formatMask == formatCompressed {
			c.broken = true
			break
		}
		id := c.owner(e)
		q := c.last
		if q == nil || q.id != id {
			if q = find(id); q == nil {
				c.next++
				continue
			}
			c.last = q
		}
		var p []byte
		if own&formatMask != 0 {
			p = c.payload(e, own)
		}
		if q.complete(e, own, p, &dst[n]) {
			n++
		}
		c.next++
	}
	if c.next != start {
		mmio.WriteBarrier()
		mmio.StoreBE32(c.record, c.next&numberMask)
	}
	return n
}

// forget takes the entries not yet polled of a queue pair out, and gives receives that
// they took from a shared queue back to it. Preconditions: the NIC writes no more of
// them.
func (c *cqRing) forget(q *ends) {
	c.last = nil
	end := c.next + uint32(c.waiting())
	mmio.ReadBarrier()
	gone := uint32(0)
	for at := end; at != c.next; {
		at--
		e, own, _ := c.pending(at)
		switch {
		case c.owner(e) == q.id:
			if q.shared != nil && received(own>>4) {
				q.shared.retire(counter(e))
			}
			gone++
		case gone > 0: // the others close up towards the end
			c.put(at+gone, c.slot(at), own)
		}
	}
	if gone > 0 {
		c.next += gone
		mmio.WriteBarrier()
		mmio.StoreBE32(c.record, c.next&numberMask)
	}
}

// put makes a copy of an entry with this last byte the one at a position.
func (c *cqRing) put(at uint32, entry []byte, own uint8) {
	d := c.slot(at)
	copy(d, entry)
	own &^= cqeOwnerMask
	if at&(c.mask+1) != 0 {
		own |= cqeOwnerMask
	}
	d[len(d)-1] = own
}

// moveTo makes the entries not yet polled those of a larger or smaller ring that the
// NIC goes on in, up to the entry that says so, and goes on there too. false: there
// is no such entry, or there are more entries than the other ring holds: those that
// came while it was asked for. That entry counts, so the others come one position later.
func (c *cqRing) moveTo(to *cqRing) bool {
	for n := uint32(0); n <= c.mask; n++ {
		_, own, ok := c.pending(c.next + n)
		if !ok {
			return false
		}
		mmio.ReadBarrier()
		if own>>4 == cqeResize {
			to.next, to.last = c.next+1, c.last
			*c = *to
			return true
		}
		if n > to.mask {
			return false
		}
		to.put(c.next+n+1, c.slot(c.next+n), own)
	}
	return false
}
