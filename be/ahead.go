package be

import (
	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/internal/prefetch"
)

// With ten thousand sockets, or a thousand engines, what a message touches of its own is in
// no cache near the worker, and each line that is missing is waited for. So the worker goes
// over a batch before it works on it: misses that do not depend on one another are waited
// for all at once, and stores are not waited for at all. What is written there changes
// nothing.

// worthLooking is the smallest batch for which it pays, and crowd the number of a worker's
// engines, or of an engine's sockets, from which on: what fewer ones need stays in the
// caches.
const (
	worthLooking = 2
	crowd        = 256
)

// lookAhead touches the engines and sockets that n completions are for.
func (w *worker) lookAhead(n int) {
	if n < worthLooking {
		return
	}
	var engines [pollBatch]*core.Engine
	var last *core.Engine
	many := len(w.conns) >= crowd
	for i := range n {
		c := &w.wcs[i]
		if c.ID&idRecv == 0 { // what was posted a moment ago
			continue
		}
		conn := w.of[i]
		if conn == nil {
			continue
		}
		if e := conn.e; many && e != last {
			prefetch.Object(e)
			engines[i], last = e, e
		} else if e.Sockets() >= crowd {
			engines[i] = e
		}
	}
	k := 0
	for i, e := range engines[:n] {
		if e != nil {
			if s := e.LookAhead(&w.wcs[i]); s != nil {
				w.seen[k] = s
				k++
			}
		}
	}
	for _, s := range w.seen[:k] {
		s.TouchRecv()
	}
	for _, s := range w.seen[:k] {
		if s, ok := s.User.(*Socket); ok {
			s.touched = true
		}
	}
}

// lookAtCommands touches the sockets of the commands that are next in the ring.
func (w *worker) lookAtCommands() {
	k := 0
	for r := w.ring; k < len(w.seen); k++ {
		c := &r.cells[(r.head+uint64(k))%ringSize]
		if c.seq.Load() != r.head+uint64(k)+1 {
			break
		}
		w.seen[k] = c.cmd.sock
	}
	if k < worthLooking {
		return
	}
	for _, s := range w.seen[:k] {
		if s != nil {
			s.TouchSend()
		}
	}
}
