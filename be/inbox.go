package be

import (
	"runtime"
	"sync/atomic"
)

// inbox carries a socket's messages from the worker to the goroutines that take
// them: one producer and many consumers. It grows as far as a socket needs it, at
// most to the backlog, which bounds what is in it: so that of ten thousand sockets
// those that are idle cost next to nothing.
type inbox struct {
	oldest atomic.Pointer[inboxRing] // from which messages are taken; nil: none came
	newest *inboxRing                // the worker's: to which they are added
}

// firstInbox is how many messages the first ring of an inbox takes, a power of two
// and at least 2: in a ring of one cell, full would look like free. With two, a ring
// is two cache lines.
const firstInbox = 2

// push is the worker's. It reports false when there are backlog messages and more.
func (in *inbox) push(m message, backlog int) bool {
	r := in.newest
	if r == nil {
		r = newInboxRing(firstInbox)
		in.newest = r
		in.oldest.Store(r)
	}
	if r.push(m) {
		return true
	}
	if len(r.cells) >= backlog {
		return false
	}
	r = newInboxRing(2 * len(r.cells))
	r.push(m)
	in.newest.next.Store(r)
	in.newest = r
	return true
}

// pop takes the oldest message.
func (in *inbox) pop() (message, bool) {
	for {
		r := in.oldest.Load()
		if r == nil {
			return message{}, false
		}
		if m, ok := r.pop(); ok {
			return m, true
		}
		next := r.next.Load()
		if next == nil {
			return message{}, false
		}
		// What was added to r before the next ring was is there now at the latest.
		if m, ok := r.pop(); ok {
			return m, true
		}
		in.oldest.CompareAndSwap(r, next)
	}
}

// empty reports whether a pop would find nothing.
func (in *inbox) empty() bool {
	for r := in.oldest.Load(); r != nil; r = r.next.Load() {
		if !r.empty() {
			return false
		}
	}
	return true
}

// inboxRing is a bounded ring with one producer and many consumers. The cells of the
// first ring are part of it, and keep the two sides' counts apart in all.
type inboxRing struct {
	cells []inboxCell
	tail  uint64                    // the worker's
	next  atomic.Pointer[inboxRing] // set when nothing more is added to this one
	first [firstInbox]inboxCell
	head  atomic.Uint64
}

func (r *inboxRing) cell(pos uint64) *inboxCell { return &r.cells[pos&uint64(len(r.cells)-1)] }

type inboxCell struct {
	seq atomic.Uint64 // position: free for it; position+1: holds its message
	msg message
}

// message is a received message, and what of the quota goes with it.
type message struct {
	b        []byte
	reserved int
}

// newInboxRing makes a ring for size messages, a power of two.
func newInboxRing(size int) *inboxRing {
	r := new(inboxRing)
	if r.cells = r.first[:]; size > firstInbox {
		r.cells = make([]inboxCell, size)
	}
	for i := range r.cells {
		r.cells[i].seq.Store(uint64(i))
	}
	return r
}

// push reports false when the ring is full. A consumer may have claimed the oldest
// message and not emptied its cell yet, while others took all that came after it:
// push waits for that consumer, which is between two stores.
func (r *inboxRing) push(m message) bool {
	c := r.cell(r.tail)
	for c.seq.Load() != r.tail {
		if r.head.Load()+uint64(len(r.cells)) <= r.tail {
			return false
		}
		runtime.Gosched()
	}
	c.msg = m
	c.seq.Store(r.tail + 1)
	r.tail++
	return true
}

func (r *inboxRing) pop() (m message, ok bool) {
	for {
		pos := r.head.Load()
		c := r.cell(pos)
		switch seq := c.seq.Load(); {
		case seq == pos+1:
			if r.head.CompareAndSwap(pos, pos+1) {
				m = c.msg
				c.msg = message{}
				c.seq.Store(pos + uint64(len(r.cells)))
				return m, true
			}
		case int64(seq-pos) <= 0:
			return message{}, false
		}
	}
}

func (r *inboxRing) empty() bool {
	pos := r.head.Load()
	return r.cell(pos).seq.Load() != pos+1
}
