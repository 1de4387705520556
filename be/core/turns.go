package core

import "math/bits"

// turn is an engine's place among those of its worker that have messages waiting.
type turn struct {
	prev, next *Engine // in its slot
	round      uint32  // in which it had its last turn
	slot       uint8   // for ever
}

// ring is the peers of a worker that have messages waiting. Each has a turn of one
// message a round, so that one with many of them does not hold up the rest. Their places
// are drawn by lot: of nodes that the same peers want to send to at the same time, each
// begins with others. In the order of arrival all would ask the same few peers, whose
// links cannot carry that, and leave their own idle.
type ring struct {
	slots [ringSlots]struct{ head, tail *Engine }
	full  uint64 // slots that are not empty
	n     int
	pos   uint8
	round uint32 // from 1
}

const ringSlots = 64

// ringSlot draws the place of engine number n at a node.
func ringSlot(seed, n uint64) uint8 {
	x := (seed + n + 1) * 0x9e3779b97f4a7c15 // the golden ratio, as hashes of integers use it
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	return uint8(x >> 58)
}

func (r *ring) add(e *Engine) {
	t := &e.turn
	l := &r.slots[t.slot]
	if t.prev, t.next = l.tail, nil; l.tail != nil {
		l.tail.turn.next = e
	} else {
		l.head = e
	}
	l.tail = e
	r.full |= 1 << t.slot
	r.n++
}

func (r *ring) remove(e *Engine) {
	t := &e.turn
	l := &r.slots[t.slot]
	if t.prev != nil {
		t.prev.turn.next = t.next
	} else {
		l.head = t.next
	}
	if t.next != nil {
		t.next.turn.prev = t.prev
	} else {
		l.tail = t.prev
	}
	if l.head == nil {
		r.full &^= 1 << t.slot
	}
	t.prev, t.next = nil, nil
	r.n--
}

// first is the peer whose turn it is, nil if none waits.
func (r *ring) first() *Engine {
	for r.n > 0 {
		if ahead := r.full >> r.pos; ahead != 0 {
			r.pos += uint8(bits.TrailingZeros64(ahead))
			// Those that had their turn in this round went to the end of their slot.
			if e := r.slots[r.pos].head; e.turn.round != r.round {
				return e
			}
			r.pos++
		} else {
			r.pos = ringSlots
		}
		if r.pos == ringSlots {
			r.pos = 0
			r.round++
		}
	}
	return nil
}

// pop takes a message from who is first.
func (r *ring) pop(e *Engine) *incoming {
	in := e.waiting.head
	e.waiting.remove(in)
	e.turn.round = r.round
	r.remove(e)
	if e.waiting.head != nil {
		r.add(e)
	}
	return in
}
