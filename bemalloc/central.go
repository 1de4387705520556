package bemalloc

import "sync"

// central is the list of one class's spans with free objects. A span that was
// full goes to the front when it regains an object, so that the emptier ones
// behind it drain.
type central struct {
	mu    sync.Mutex
	head  uint32 // first span with a free object, as unit + 1
	class uint32
	owner uint32 // heap with a quota that it belongs to; 0: shared

	listed int   // spans in the list
	spans  int   // all spans
	out    int64 // objects in caches or in use
	takes  int64 // batches
	puts   int64
	waits  int64 // times the lock was held by another
	_      [32]byte
}

func (ce *central) lock() {
	if !ce.mu.TryLock() {
		ce.mu.Lock()
		ce.waits++
	}
}

// take fills buf with objects from the list, as far as they go.
func (ce *central) take(t *table, buf []uint32) int {
	ce.lock()
	n := ce.takeLocked(t, buf)
	ce.mu.Unlock()
	return n
}

func (ce *central) takeLocked(t *table, buf []uint32) (n int) {
	step := classes[ce.class].size / objAlign
	for ce.head != 0 && n < len(buf) {
		u := ce.head - 1
		s := t.span(u)
		n += s.take(buf[n:], u<<(unitShift-objShift), step)
		if s.words == 0 {
			ce.unlist(t, s, u)
		}
	}
	ce.out += int64(n)
	ce.takes++
	return n
}

// adopt adds the new span at unit u and fills buf from the list.
func (ce *central) adopt(t *table, u uint32, buf []uint32) int {
	ce.lock()
	s := t.span(u)
	s.reset(ce.class, classes[ce.class].nobj, ce.owner)
	ce.list(t, s, u)
	ce.spans++
	n := ce.takeLocked(t, buf)
	ce.mu.Unlock()
	return n
}

// put takes objects back. It fills empty with the first units of spans that the
// list let go of, and counts objects that were free already or never handed out.
func (ce *central) put(t *table, objs []uint32, empty []uint32) (released []uint32, twice int) {
	ci := &classes[ce.class]
	released = empty[:0]
	ce.lock()
	for _, obj := range objs {
		u := obj >> (unitShift - objShift)
		w := t.word(u)
		if w.kind() != ce.kind() {
			twice++
			continue
		}
		u -= w.back()
		s := t.span(u)
		idx, rem := ci.locate((obj - u<<(unitShift-objShift)) << objShift)
		if s.class != ce.class || s.owner != ce.owner || rem != 0 || idx >= uint32(s.nobj) || !s.put(idx) {
			twice++
			continue
		}
		ce.out--
		if !s.listed {
			ce.list(t, s, u)
		}
		if s.used == 0 && (ce.listed > 1 && len(released) < cap(released)) {
			released = append(released, ce.retire(t, s, u))
		}
	}
	ce.puts++
	ce.mu.Unlock()
	return released, twice
}

// kind is that of the words of the list's spans.
func (ce *central) kind() uint32 {
	if ce.owner != 0 {
		return kindOwned
	}
	return kindClass + ce.class
}

// drain lets go of the spare empty spans, at most len(empty) of them.
func (ce *central) drain(t *table, empty []uint32) (released []uint32) {
	released = empty[:0]
	ce.lock()
	for at := ce.head; at != 0 && len(released) < cap(released); {
		u := at - 1
		s := t.span(u)
		at = s.next
		if s.used == 0 {
			released = append(released, ce.retire(t, s, u))
		}
	}
	ce.mu.Unlock()
	return released
}

// retire takes the empty span at unit u out of the list and returns u.
func (ce *central) retire(t *table, s *span, u uint32) uint32 {
	ce.unlist(t, s, u)
	s.nobj, s.owner = 0, 0
	ce.spans--
	return u
}

func (ce *central) list(t *table, s *span, u uint32) {
	s.prev, s.next, s.listed = 0, ce.head, true
	if ce.head != 0 {
		t.span(ce.head - 1).prev = u + 1
	}
	ce.head = u + 1
	ce.listed++
}

func (ce *central) unlist(t *table, s *span, u uint32) {
	if s.prev != 0 {
		t.span(s.prev - 1).next = s.next
	} else {
		ce.head = s.next
	}
	if s.next != 0 {
		t.span(s.next - 1).prev = s.prev
	}
	s.next, s.prev, s.listed = 0, 0, false
	ce.listed--
}
