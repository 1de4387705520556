package core

import (
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
)

const (
	// slotBytes is the room for one control message: MaxControl, rounded up to a multiple
	// of 64 so that no two share a cache line.
	slotBytes = (wire.MaxControl + 63) &^ 63
	// leastSlots is how many slots there always are for each chain.
	leastSlots = 8
	// moreSlots is by how many they grow.
	moreSlots = 16
)

// slot is what a chain remembers of one request until it completes, with the place of
// its control message: a line of the cache each.
type slot struct {
	next   *slot            // of its chain, or of those that are free
	prev   *slot            // of its chain
	header *[slotBytes]byte // registered
	lkey   mr.LKey          // of header
	msg    *outgoing        // the message that the request belongs to, or the first of several; nil: control, or a READ of get mode
	in     *incoming        // the message that a READ of get mode belongs to
	bytes  int              // of the send window
	at     time.Duration    // when it was prepared
}

// slots are those of all chains of one goroutine. The one that became free last is used
// first: it is in the cache, whichever chain had it. There are as many as were ever in use
// at a time, and a least number for each chain, which no other takes: when memory is
// short, a chain whose peer is stuck holds up nobody else.
type slots struct {
	free   *slot
	least  int // of each chain
	spare  int // free ones that are not some chain's least
	chains int
	mem    Memory
	slabs  [][]byte // that the headers are in
}

// enter keeps the least number of slots for one more chain.
func (p *slots) enter() error {
	if p.spare < p.least {
		if err := p.grow(); err != nil {
			return err
		}
	}
	p.spare -= p.least
	p.chains++
	return nil
}

// leave is the end of a chain, which has none in use. The last one's gives the memory back.
func (p *slots) leave() {
	p.spare += p.least
	if p.chains--; p.chains == 0 {
		for _, b := range p.slabs {
			p.mem.Free(b)
		}
		p.free, p.spare, p.slabs = nil, 0, nil
	}
}

// more reports whether a chain may have more than the least number.
func (p *slots) more() bool { return p.spare > 0 || p.grow() == nil }

// grow makes more slots.
func (p *slots) grow() error {
	slab, err := p.mem.Alloc(moreSlots * slotBytes)
	if err != nil {
		return err
	}
	key, err := p.mem.LKey(slab)
	if err != nil {
		p.mem.Free(slab)
		return err
	}
	all := make([]slot, moreSlots)
	for i := range all {
		s := &all[i]
		s.header, s.lkey = (*[slotBytes]byte)(slab[i*slotBytes:]), key
		s.next, p.free = p.free, s
	}
	p.spare += moreSlots
	p.slabs = append(p.slabs, slab)
	return nil
}

// pop takes a slot for a chain that has n in use. There is one.
func (p *slots) pop(n place) *slot {
	s := p.free
	p.free = s.next
	if int(n) >= p.least {
		p.spare--
	}
	return s
}

// push gives back a slot of a chain that has n left in use.
func (p *slots) push(s *slot, n place) {
	s.next, p.free = p.free, s
	if int(n) >= p.least {
		p.spare++
	}
}
