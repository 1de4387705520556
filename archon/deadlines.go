package archon

import "time"

// deadlineHeap is a binary heap of slots by deadline, which also knows where each
// slot is, so that a call that ends takes its deadline along. Calls of equal
// timeout come in ascending order, which costs a push one comparison.
type deadlineHeap struct {
	entries []deadlineEntry
	where   []int32 // by slot: 1 + its place in entries, 0: none
}

type deadlineEntry struct {
	at   time.Duration
	slot uint32
}

// grow makes room for slots 0 to n-1.
func (h *deadlineHeap) grow(n int) {
	for len(h.where) < n {
		h.where = append(h.where, 0)
	}
}

// first is the slot with the earliest deadline.
func (h *deadlineHeap) first() (slot uint32, at time.Duration, ok bool) {
	if len(h.entries) == 0 {
		return 0, 0, false
	}
	return h.entries[0].slot, h.entries[0].at, true
}

// push adds a slot that is not in the heap.
func (h *deadlineHeap) push(slot uint32, at time.Duration) {
	h.entries = append(h.entries, deadlineEntry{at: at, slot: slot})
	h.up(len(h.entries) - 1)
}

// remove takes the slot out, if it is in.
func (h *deadlineHeap) remove(slot uint32) {
	i := int(h.where[slot]) - 1
	if i < 0 {
		return
	}
	h.where[slot] = 0
	last := len(h.entries) - 1
	moved := h.entries[last]
	h.entries = h.entries[:last]
	if i == last {
		return
	}
	h.entries[i] = moved
	if !h.up(i) {
		h.down(i)
	}
}

// up moves the entry at i to its place towards the root, and tells whether it moved.
func (h *deadlineHeap) up(i int) bool {
	start, e := i, h.entries[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h.entries[parent].at <= e.at {
			break
		}
		h.set(i, h.entries[parent])
		i = parent
	}
	h.set(i, e)
	return i != start
}

// down moves the entry at i to its place towards the leaves.
func (h *deadlineHeap) down(i int) {
	e := h.entries[i]
	for {
		child := 2*i + 1
		if child >= len(h.entries) {
			break
		}
		if child+1 < len(h.entries) && h.entries[child+1].at < h.entries[child].at {
			child++
		}
		if e.at <= h.entries[child].at {
			break
		}
		h.set(i, h.entries[child])
		i = child
	}
	h.set(i, e)
}

func (h *deadlineHeap) set(i int, e deadlineEntry) {
	h.entries[i] = e
	h.where[e.slot] = int32(i) + 1
}
