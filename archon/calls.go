package archon

import "time"

// callTable holds a client's outstanding calls: it decides ids, which response
// belongs to which call, and which deadlines have passed. It has no clock and no
// lock; times are durations since the client's start. The zero value with a limit
// is ready.
type callTable struct {
	limit     int // calls outstanding at most
	slots     []callSlot
	free      uint32 // 1 + index of the first free slot, 0: none
	live      int
	deadlines deadlineHeap
}

// callSlot is one place of the table.
type callSlot struct {
	call       *Call
	generation uint32 // of the current or next call here
	nextFree   uint32
}

// add makes call outstanding. A deadline of 0 is none. ok is false when the table
// is full.
func (t *callTable) add(call *Call, deadline time.Duration) (id CallID, ok bool) {
	var index uint32
	switch {
	case t.free != 0:
		index = t.free - 1
		t.free = t.slots[index].nextFree
	case len(t.slots) < t.limit:
		index = uint32(len(t.slots))
		t.slots = append(t.slots, callSlot{})
		t.deadlines.grow(len(t.slots))
	default:
		return 0, false
	}
	t.slots[index].call = call
	t.live++
	if deadline != 0 {
		t.deadlines.push(index, deadline)
	}
	return newCallID(index, t.slots[index].generation), true
}

// take ends the call named by id and gives it, or nil when there is no such call
// outstanding: it is over, or the peer made the id up.
func (t *callTable) take(id CallID) *Call {
	if t.find(id) == nil {
		return nil
	}
	return t.remove(id.slot())
}

// used tells whether the slot of id was ever used: other ids are made up.
func (t *callTable) used(id CallID) bool { return uint64(id.slot()) < uint64(len(t.slots)) }

// find gives the outstanding call named by id, or nil as take does.
func (t *callTable) find(id CallID) *Call {
	if !t.used(id) {
		return nil
	}
	if s := &t.slots[id.slot()]; s.generation == id.generation() {
		return s.call
	}
	return nil
}

// has tells whether id names that call and it is outstanding.
func (t *callTable) has(id CallID, call *Call) bool {
	return call != nil && t.find(id) == call
}

// takeExpired ends a call whose deadline is not after now, and gives it;
// nil when there is none.
func (t *callTable) takeExpired(now time.Duration) *Call {
	index, deadline, ok := t.deadlines.first()
	if !ok || deadline > now {
		return nil
	}
	return t.remove(index)
}

// takeAll ends every call and gives them.
func (t *callTable) takeAll() []*Call {
	calls := make([]*Call, 0, t.live)
	for i := range t.slots {
		if t.slots[i].call != nil {
			calls = append(calls, t.remove(uint32(i)))
		}
	}
	return calls
}

// next is the earliest deadline; ok is false when no call has one.
func (t *callTable) next() (deadline time.Duration, ok bool) {
	_, deadline, ok = t.deadlines.first()
	return deadline, ok
}

func (t *callTable) remove(index uint32) *Call {
	s := &t.slots[index]
	call := s.call
	s.call = nil
	s.generation++
	s.nextFree, t.free = t.free, index+1
	t.live--
	t.deadlines.remove(index)
	return call
}
