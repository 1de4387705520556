package be

import (
	"container/heap"
	"math"

	"github.com/byteexpress/byteexpress/be/core"
)

// dueHeap has a worker's connections, first the one that is to be looked at next: at its
// engine's deadline, or before, as that mostly moves away with each message.
type dueHeap []*conn

// Len, Less, Swap, Push and Pop are for package heap.
func (h dueHeap) Len() int { return len(h) }

// Less is by time.
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

// Swap keeps the places.
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds a connection.
func (h *dueHeap) Push(x any) {
	c := x.(*conn)
	c.place = len(*h)
	*h = append(*h, c)
}

// Pop removes the last one.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	c.due = math.MinInt64 // see await
	return c
}

// await has tick look at a connection in time, whose engine did something. One that is not
// in the heap has nothing to be awaited.
func (w *worker) await(c *conn) {
	if d := c.e.Deadline(); d < c.due {
		c.due = d
		heap.Fix(&w.due, c.place)
		w.next = min(w.next, d)
	}
}

// retryHeld has messages that wait for memory get some. Their engines want to be called
// soon, so that no others are looked at.
func (w *worker) retryHeld() {
	for _, c := range w.dirty {
		w.await(c)
	}
	w.retryFrom(0)
}

// retryFrom is retryHeld for a part of the heap.
func (w *worker) retryFrom(i int) {
	if i >= len(w.due) || w.due[i].due > w.now+core.MemoryRetry {
		return
	}
	if c := w.due[i]; c.e.Held() > 0 {
		c.e.Retry(w.now)
		w.touch(c)
	}
	w.retryFrom(2*i + 1)
	w.retryFrom(2*i + 2)
}

// tick calls the engines whose time has come, and finds the next such time. It looks at
// no others: idle ones cost nothing.
func (w *worker) tick() {
	w.next = core.Never
	if w.shared != nil && w.shared.SharedRecv != nil {
		w.shared.Tick(w.now)
		w.next = w.shared.Deadline()
	}
	for len(w.due) > 0 && w.due[0].due <= w.now {
		c := w.due[0]
		d := c.e.Deadline()
		if d <= w.now {
			c.e.Tick(w.now)
			w.touch(c)
			if c.index < 0 { // down
				continue
			}
			d = max(c.e.Deadline(), w.now+1) // once a turn
		}
		c.due = d
		heap.Fix(&w.due, c.place)
	}
	if len(w.due) > 0 {
		w.next = min(w.next, w.due[0].due)
	}
}
