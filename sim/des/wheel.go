package des

import "math/bits"

const (
	slotTime   = 512 * Picosecond // a power of two
	wheelSlots = 1 << 15
)

// wheel is events by the slot of time in which they come, 16.8 us of slots around. A
// slot's events are in the order in which they were added.
type wheel struct {
	last  [wheelSlots]int32            // of a slot: its last node, whose link is the first; 0: empty
	full  [wheelSlots / 64]uint64      // a bit for each slot that is not empty
	words [wheelSlots / 64 / 64]uint64 // a bit for each word of full that is not 0
	nodes []event                      // from 1; those that are free have a list
	free  int32                        // first of them, 0: none
	n     int
}

// slotOf is the slot of a time.
func slotOf(t Time) int { return int(uint64(t)/uint64(slotTime)) % wheelSlots }

// add puts an event into its slot. It comes less than one turn of the wheel after the first.
func (w *wheel) add(e *event) {
	i := w.free
	if i == 0 {
		i = w.grow()
	}
	d := &w.nodes[i]
	w.free = d.link
	*d = *e
	s := slotOf(e.at)
	if l := w.last[s]; l == 0 {
		d.link = i
		w.full[s/64] |= 1 << (s % 64)
		w.words[s/64/64] |= 1 << (s / 64 % 64)
	} else {
		d.link = w.nodes[l].link
		w.nodes[l].link = i
	}
	w.last[s] = i
	w.n++
}

// grow makes nodes and gives the first of them.
func (w *wheel) grow() int32 {
	from := max(len(w.nodes), 1)
	w.nodes = append(w.nodes, make([]event, max(2*from, 64)-len(w.nodes))...)
	for i := from; i < len(w.nodes)-1; i++ {
		w.nodes[i].link = int32(i + 1)
	}
	return int32(from)
}

// next is the time at which the first slot from the base on that is not empty begins.
// There is one.
func (w *wheel) next(base Time) Time {
	from := slotOf(base)
	return base + Time((w.find(from)-from)&(wheelSlots-1))*slotTime
}

// find gives the first slot, from one on and around, that is not empty.
func (w *wheel) find(from int) int {
	if m := w.full[from/64] >> (from % 64); m != 0 {
		return from + bits.TrailingZeros64(m)
	}
	at := from/64 + 1 // of the next word
	for {
		at %= len(w.full)
		if m := w.words[at/64] >> (at % 64); m != 0 {
			at += bits.TrailingZeros64(m)
			return at*64 + bits.TrailingZeros64(w.full[at])
		}
		at = (at/64 + 1) * 64
	}
}

// first is the time of the first event. There is one.
func (w *wheel) first(base Time) Time {
	l := w.last[w.find(slotOf(base))]
	t := w.nodes[l].at
	for i := w.nodes[l].link; i != l; i = w.nodes[i].link {
		t = min(t, w.nodes[i].at)
	}
	return t
}

// take moves the events of a slot, the one of a time, to a ring.
func (w *wheel) take(at Time, to *ring) {
	s := slotOf(at)
	l := w.last[s]
	first := w.nodes[l].link
	for i := first; ; {
		e := w.nodes[i]
		next := e.link
		e.link = 0
		to.insert(&e)
		if w.n--; i == l {
			break
		}
		i = next
	}
	w.nodes[l].link = w.free
	w.free, w.last[s] = first, 0
	if w.full[s/64] &^= 1 << (s % 64); w.full[s/64] == 0 {
		w.words[s/64/64] &^= 1 << (s / 64 % 64)
	}
}
