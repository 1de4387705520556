package ps

import "math"

// sweep removes the rows that are not the shard's own: those that left with a new map, and
// those that were brought for one that did not come. Its steps are short, and calls go on
// in between. In the end it gives memory back.
type sweep struct {
	active bool
	at     int // place in the index
	index  int // length of the index, which is being gone through
	moving bool
}

func (w *sweep) begin() { *w = sweep{active: true} }

// removes tells whether there may still be rows that are not the shard's.
func (w *sweep) removes() bool { return w.active && !w.moving }

// waits tells whether nothing is to be done but to wait for memory that is lent.
func (w *sweep) waits() bool { return w.active && w.moving && w.at == w.index }

const sweepEntries = 512 // of the index, a step

// sweepStep does a part, if there is something to do. The caller holds mu.
func (s *Shard) sweepStep() {
	w, t := &s.sweep, s.table
	if w.index != len(t.index) { // it has grown: rows are at other places
		w.at, w.index = 0, len(t.index)
	}
	for range sweepEntries {
		if w.at == w.index {
			break
		}
		switch e := t.index[w.at]; {
		case e.row == 0:
		case w.moving:
			if !t.sink(w.at) {
				w.active = false
				return
			}
		default:
			if hash := Hash(e.key); !s.own.mine(e.key, hash) {
				t.remove(e.key, hash)
				continue // another may have come to its place
			}
		}
		w.at++
	}
	switch {
	case w.at < w.index:
	case !w.moving && t.beginShrink():
		w.moving, w.at = true, 0
	default:
		w.active = w.moving && t.limit != noLimit && !t.endShrink() // a response may still have rows
	}
}

// remove removes a row, which is there.
func (t *table) remove(key, hash uint64) {
	mask := uint64(len(t.index) - 1)
	i := hash & mask
	for t.index[i].key != key || t.index[i].row == 0 {
		i = (i + 1) & mask
	}
	t.retire(t.index[i].row)
	for j := (i + 1) & mask; t.index[j].row != 0; j = (j + 1) & mask {
		home := Hash(t.index[j].key) & mask
		if (j-home)&mask >= (j-i)&mask { // it may lie at i
			t.index[i] = t.index[j]
			i = j
		}
	}
	t.index[i] = indexEntry{}
	t.rows--
}

// noLimit is the limit of a table that gives nothing up.
const noLimit = math.MaxUint32

// beginShrink begins to give up the chunks that the rows do not need: slots above the
// limit are not used any more. It tells whether there are any.
func (t *table) beginShrink() bool {
	if t.limit != noLimit {
		t.cancelShrink()
	}
	need := (t.rows + 1<<t.chunkShift - 1) >> t.chunkShift
	if need >= len(t.chunks) {
		return false
	}
	t.limit = uint32(need << t.chunkShift)
	t.loans.divide(t.limit)
	return true
}

// sink moves the row at a place of the index below the limit. If there is no room, nothing
// is given up.
func (t *table) sink(at int) bool {
	e := &t.index[at]
	if e.row == 0 || e.row <= t.limit {
		return t.limit != noLimit
	}
	n := t.loans.takeFree()
	if n == 0 {
		t.cancelShrink()
		return false
	}
	copy(t.slot(n), t.slot(e.row))
	*t.version(n) = *t.version(e.row)
	old := e.row
	e.row = n
	t.retire(old)
	return true
}

// endShrink frees the memory of what was given up; false: some of it is still lent.
func (t *table) endShrink() bool {
	if !t.loans.takeAbove(t.slots - int(t.limit)) {
		return false
	}
	need := int(t.limit) >> t.chunkShift
	for i := range t.chunks[need:] {
		if c := &t.chunks[need+i]; c.raw != nil {
			t.memory.Free(c.raw)
		}
		t.chunks[need+i] = chunk{}
	}
	t.chunks, t.slots, t.limit = t.chunks[:need:need], int(t.limit), noLimit
	return true
}

// cancelShrink keeps what was to be given up.
func (t *table) cancelShrink() {
	t.limit = noLimit
	t.loans.unite()
}

// divide puts the free slots above a limit aside, and those that come to be free.
func (l *loans) divide(limit uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = limit
	below := l.free[:0]
	for _, n := range l.free {
		if n > limit {
			l.above = append(l.above, n)
		} else {
			below = append(below, n)
		}
	}
	l.free = below
}

// takeAbove forgets the slots above the limit if they are all free: n of them.
func (l *loans) takeAbove(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.above) != n {
		return false
	}
	l.above, l.limit = nil, noLimit
	return true
}

// unite makes all free slots alike again.
func (l *loans) unite() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, l.above...)
	l.above, l.limit = nil, noLimit
}
