package be

import (
	"runtime"
	"sync/atomic"
)

// inbox carries a socket's messages from the worker to the goroutines that call
// Recv: a bounded ring with one producer and many consumers. The backlog bounds
// what is in it, so it is never full.
type inbox struct {
	cells []inboxCell
	mask  uint64
	tail  uint64 // the worker's
	_     [48]byte
	head  atomic.Uint64
}

type inboxCell struct {
	seq atomic.Uint64 // position: free for it; position+1: holds its message
	msg message
}

// message is a received message, and what of the quota goes with it.
type message struct {
	b        []byte
	reserved int
}

func newInbox(backlog int) *inbox {
	size := 1
	for size < backlog {
		size *= 2
	}
	in := &inbox{cells: make([]inboxCell, size), mask: uint64(size - 1)}
	for i := range in.cells {
		in.cells[i].seq.Store(uint64(i))
	}
	return in
}

// push is the worker's. It reports false when the ring is full. A consumer may have
// claimed the oldest message and not emptied its cell yet, while others took all
// that came after it: push waits for that consumer, which is between two stores.
func (in *inbox) push(m message) bool {
	c := &in.cells[in.tail&in.mask]
	for c.seq.Load() != in.tail {
		if in.head.Load()+in.mask+1 <= in.tail {
			return false
		}
		runtime.Gosched()
	}
	c.msg = m
	c.seq.Store(in.tail + 1)
	in.tail++
	return true
}

// pop takes the oldest message.
func (in *inbox) pop() (m message, ok bool) {
	for {
		pos := in.head.Load()
		c := &in.cells[pos&in.mask]
		switch seq := c.seq.Load(); {
		case seq == pos+1:
			if in.head.CompareAndSwap(pos, pos+1) {
				m = c.msg
				c.msg = message{}
				c.seq.Store(pos + in.mask + 1)
				return m, true
			}
		case int64(seq-pos) <= 0:
			return message{}, false
		}
	}
}

// empty reports whether a pop would find nothing.
func (in *inbox) empty() bool {
	pos := in.head.Load()
	return in.cells[pos&in.mask].seq.Load() != pos+1
}
