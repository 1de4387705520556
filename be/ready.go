package be

import (
	"runtime"
	"sync/atomic"
)

// readyQueue is a queue of sockets, many producers and many consumers, with room for
// all that can be in it: push never waits for a consumer to come. It is a bounded ring
// after Vyukov, as [ring] is. A socket that had nothing brings its message along: of ten
// thousand with a message each, none touches its inbox.
type readyQueue struct {
	cells []readyCell
	_     [40]byte
	tail  atomic.Uint64
	_     [56]byte
	head  atomic.Uint64
	_     [56]byte
}

type readyCell struct {
	seq  atomic.Uint64 // position: free for it; position+1: holds its socket
	sock *Socket
	msg  message // without a buffer: what there is is in the socket's inbox
}

// init makes room for n sockets.
func (q *readyQueue) init(n int) {
	size := 2 // in a ring of one cell, full would look like free
	for size < n {
		size *= 2
	}
	q.cells = make([]readyCell, size)
	for i := range q.cells {
		q.cells[i].seq.Store(uint64(i))
	}
}

func (q *readyQueue) cell(pos uint64) *readyCell { return &q.cells[pos&uint64(len(q.cells)-1)] }

// push adds a socket, of at most as many as there is room for. A consumer may have
// claimed the cell a round ago and not emptied it yet: push waits for that consumer,
// which is between two stores.
func (q *readyQueue) push(s *Socket, msg message) {
	for {
		pos := q.tail.Load()
		c := q.cell(pos)
		switch seq := c.seq.Load(); {
		case seq == pos:
			if q.tail.CompareAndSwap(pos, pos+1) {
				c.sock, c.msg = s, msg
				c.seq.Store(pos + 1)
				return
			}
		case int64(seq-pos) < 0:
			runtime.Gosched()
		}
	}
}

// pop takes the oldest socket, nil if there is none.
func (q *readyQueue) pop() (s *Socket, msg message) {
	for {
		pos := q.head.Load()
		c := q.cell(pos)
		switch seq := c.seq.Load(); {
		case seq == pos+1:
			if q.head.CompareAndSwap(pos, pos+1) {
				s, msg = c.sock, c.msg
				c.sock, c.msg = nil, message{}
				c.seq.Store(pos + uint64(len(q.cells)))
				return s, msg
			}
		case int64(seq-pos) <= 0:
			return nil, message{}
		}
	}
}

func (q *readyQueue) empty() bool {
	pos := q.head.Load()
	return q.cell(pos).seq.Load() != pos+1
}
