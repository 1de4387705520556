package be

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

type commandKind uint8

const (
	cmdSend commandKind = iota
	cmdGather
	cmdPut
	cmdFetch
	cmdCancel
	cmdTaken
	cmdRoom
	cmdCall
)

// what is the call that takes a buffer by a command, and waits.
func (k commandKind) what() string {
	if k == cmdFetch {
		return "Read"
	}
	return "Send"
}

// command is what an application goroutine wants of a worker.
type command struct {
	conn *conn
	sock *core.Socket // named here, so that the worker need not look at ours
	buf  []byte
	done func(error)
	tag  uint64 // cmdTaken: how many
	*commandRest
	lkey mr.LKey
	kind commandKind
}

// commandRest is what few commands need: a ring of small ones stays in the cache.
type commandRest struct {
	list  []qp.SGE   // cmdGather
	token wire.Token // cmdPut; cmdFetch: where, with what key
	call  func()     // cmdCall: anything rare
}

// calling is a cmdCall.
func calling(f func()) *command {
	return &command{kind: cmdCall, commandRest: &commandRest{call: f}}
}

// rests has those of cmdPut and cmdFetch, which the worker gives back.
var rests = sync.Pool{New: func() any { return new(commandRest) }}

const ringSize = 1024 // commands; a power of two

// closedBit in the ring's tail ends it.
const closedBit = 1 << 63

// ring carries commands from any goroutine to one worker, in the order of each
// sender. It is a bounded multi-producer ring after Vyukov: a producer claims a
// cell by moving the tail, and publishes it by the cell's sequence. That a cell is free
// again is told for all of a run at once: an atomic store for each takes 5 ns. What does
// not fit goes to an overflow list, and everything after it too, until the worker has
// run the list: so order is kept and nobody waits. There is no lock.
type ring struct {
	cells [ringSize]cell
	_     [64]byte
	tail  atomic.Uint64
	_     [64]byte

	// Producers look at these, and seldom find that they have changed.
	freed    atomic.Uint64         // head after the last run
	spilt    atomic.Uint64         // commands that go to the overflow list, are in it, or are being run from it
	overflow atomic.Pointer[spill] // the newest first
	_        [64]byte

	head uint64 // the worker's
}

// spill is a command in the overflow list.
type spill struct {
	cmd  command
	next *spill // the one before it
}

var spills sync.Pool

type cell struct {
	seq atomic.Uint64 // position+1: holds its command, or did
	cmd command
}

func newRing() *ring { return new(ring) }

// push adds a command; false after close.
func (r *ring) push(c *command) bool {
	for {
		if r.spilt.Load() > 0 {
			return r.spill(c)
		}
		pos := r.tail.Load()
		if pos&closedBit != 0 {
			return false
		}
		if int64(pos-r.freed.Load()) >= ringSize { // negative: others have moved on
			return r.spill(c)
		}
		if r.tail.CompareAndSwap(pos, pos+1) {
			cell := &r.cells[pos%ringSize]
			cell.cmd = *c
			cell.seq.Store(pos + 1)
			return true
		}
	}
}

// spill adds a command to the overflow list. It counts it first: close waits for what
// is counted, and so does whoever would go on in the ring.
func (r *ring) spill(c *command) bool {
	r.spilt.Add(1)
	if r.tail.Load()&closedBit != 0 {
		r.spilt.Add(^uint64(0))
		return false
	}
	n, ok := spills.Get().(*spill)
	if !ok {
		n = new(spill)
	}
	n.cmd = *c
	for {
		n.next = r.overflow.Load()
		if r.overflow.CompareAndSwap(n.next, n) {
			return true
		}
	}
}

// spilled takes the overflow list, the oldest first.
func (r *ring) spilled() *spill {
	var oldest *spill
	for n := r.overflow.Swap(nil); n != nil; {
		next := n.next
		n.next, oldest = oldest, n
		n = next
	}
	return oldest
}

// run hands up to limit commands to f, more if some have overflowed. It belongs
// to the worker.
func (r *ring) run(limit int, f func(*command)) (n int) {
	var list *spill
	var first uint64 // what is before it in the ring came before the list
	if r.spilt.Load() > 0 {
		list = r.spilled()
		first = r.tail.Load() &^ closedBit
	}
	for ; n < limit || r.head < first; n++ {
		c := &r.cells[r.head%ringSize]
		if c.seq.Load() != r.head+1 {
			if r.head >= first {
				break
			}
			runtime.Gosched() // its producer is about to publish it
			n--
			continue
		}
		f(&c.cmd) // if that adds commands, and the ring is full, they overflow
		c.cmd = command{}
		r.head++
	}
	if n > 0 {
		r.freed.Store(r.head)
	}
	ran := uint64(0)
	for list != nil {
		f(&list.cmd)
		next := list.next
		*list = spill{}
		spills.Put(list)
		list = next
		ran++
	}
	if ran > 0 {
		r.spilt.Add(-ran)
	}
	return n + int(ran)
}

// empty reports whether there is nothing to run.
func (r *ring) empty() bool {
	return r.cells[r.head%ringSize].seq.Load() != r.head+1 && r.spilt.Load() == 0
}

// close makes every later push fail, and waits for none: a push that succeeded
// is in the ring, though its cell may be published a moment later.
func (r *ring) close() {
	for {
		pos := r.tail.Load()
		if pos&closedBit != 0 || r.tail.CompareAndSwap(pos, pos|closedBit) {
			return
		}
	}
}

// drained reports whether all that was pushed before close has run.
func (r *ring) drained() bool {
	return r.head == r.tail.Load()&^closedBit && r.spilt.Load() == 0
}
