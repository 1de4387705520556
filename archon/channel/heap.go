package channel

import "time"

// opHeap is a binary heap of ops by the time at which the clock has to look after them.
type opHeap []*op

// first is the earliest time; 0: there is none.
func (h opHeap) first() time.Duration {
	if len(h) == 0 {
		return 0
	}
	return h[0].at
}

// due gives the op with the earliest time if that is not after now.
func (h opHeap) due(now time.Duration) *op {
	if len(h) == 0 || h[0].at > now {
		return nil
	}
	return h[0]
}

// set moves an op to a time, or out of the heap if that is 0.
func (h *opHeap) set(o *op, at time.Duration) {
	switch {
	case at == 0 && o.place == 0 || at == o.at && o.place != 0:
		return
	case at == 0:
		h.remove(o)
		return
	case o.place == 0:
		*h = append(*h, o)
		o.place = len(*h)
	}
	o.at = at
	h.down(h.up(o.place - 1))
}

func (h *opHeap) remove(o *op) {
	i, last := o.place-1, len(*h)-1
	moved := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	o.place, o.at = 0, 0
	if i != last {
		(*h)[i] = moved
		moved.place = i + 1
		h.down(h.up(i))
	}
}

func (h opHeap) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].at <= h[i].at {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i
}

func (h opHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].at < h[child].at {
			child++
		}
		if h[i].at <= h[child].at {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h opHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}
