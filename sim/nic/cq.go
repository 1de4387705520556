package nic

import (
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// index counts ring entries; it wraps around.
type index uint32

// entry is a completion with what polling it gives back.
type entry struct {
	cq.Completion
	q    *QP
	life uint32 // the queue pair's at the time
	slot index  // of the work request
	recv bool
}

// What a CQ was armed for.
const (
	disarmed uint32 = iota
	armedSolicited
	armedNext
)

// CQ is a completion queue: a ring that the NIC fills and one goroutine empties.
type CQ struct {
	ring   []entry
	mask   index
	cap    int
	notify func() // tells the owner's Wait: an event; must not block

	_ [64]byte // the two sides on cache lines of their own
	filler

	_    [64]byte
	head atomic.Uint32 // next entry to poll; written by the owner

	_      [64]byte
	users  int // queue ends that use it
	held   []entry
	passed int   // receive completions that overtook the held ones
	seen   index // NIC's copy of head
	inList bool
	qps    []*QP
}

// filler is what the NIC needs to add a completion.
type filler struct {
	Owner any // the driver's
	nic   *NIC
	sink  Sink          // takes completions in place of the ring; may be nil
	tail  atomic.Uint32 // next entry to fill; written by the NIC
	arm   atomic.Uint32
	over  atomic.Bool // a completion was dropped; written by the NIC
}

// CreateCQ makes a completion queue of at least entries. notify is called from
// the NIC when an armed event happened or the queue overflowed.
func (n *NIC) CreateCQ(entries int, notify func()) *CQ {
	size := ringSize(entries)
	return &CQ{ring: make([]entry, size), mask: index(size - 1), cap: entries, notify: notify, filler: filler{nic: n}}
}

// Sink takes a completion: of a receive or a send, solicited or not. It is called
// from within the NIC, must not call it, and says whether there was room: if not, the
// queue has overflowed.
type Sink func(c cq.Completion, recv, solicited bool) (taken bool)

// CreateSinkCQ makes a completion queue without a ring, for a model of other
// hardware on top of the NIC: completions go to the sink, and their requests' slots
// are free at once.
func (n *NIC) CreateSinkCQ(entries int, notify func(), sink Sink) *CQ {
	return &CQ{cap: entries, notify: notify, filler: filler{nic: n, sink: sink}}
}

// ringSize is the least power of two that is at least n and 1.
func ringSize(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}

// Capacity is how many completions the queue can hold.
func (c *CQ) Capacity() int { return c.cap }

// Resize gives the queue room for entries completions. The caller is the queue's
// owner and has the NIC to itself.
func (c *CQ) Resize(entries int) error {
	if c.sink != nil {
		c.cap = entries
		return nil
	}
	head, tail := index(c.head.Load()), index(c.tail.Load())
	if waiting := int(tail - head); waiting > entries {
		return fmt.Errorf("%w: %d completions wait in the queue", syscall.EINVAL, waiting)
	}
	size := ringSize(entries)
	ring, mask := make([]entry, size), index(size-1)
	for i := head; i != tail; i++ {
		ring[i&mask] = c.ring[i&c.mask]
	}
	c.ring, c.mask, c.cap = ring, mask, entries
	return nil
}

// Users is the number of queue-pair ends that complete here.
func (c *CQ) Users() int { return c.users }

// Arm asks for one notification, as cq.CQ.Arm.
func (c *CQ) Arm(solicitedOnly bool) {
	want := armedNext
	if solicitedOnly {
		want = armedSolicited
	}
	c.arm.Store(want)
}

// Overflowed reports that a completion was dropped for lack of room.
func (c *CQ) Overflowed() bool { return c.over.Load() }

// Poll moves up to len(dst) completions into dst. It belongs to the queue's
// owner, needs no lock and gives back the ring slots of the polled requests.
func (c *CQ) Poll(dst []cq.Completion) int {
	head := index(c.head.Load())
	n := min(int(index(c.tail.Load())-head), len(dst))
	if n <= 0 {
		return 0
	}
	for i := range n {
		e := &c.ring[(head+index(i))&c.mask]
		dst[i] = e.Completion
		e.q.polled(e)
	}
	c.head.Store(uint32(head + index(n)))
	return n
}

// add queues a completion, in the order that the option HoldSends asks for.
func (c *CQ) add(e *entry, solicited bool) {
	n := c.nic
	n.stats.Completions++
	if n.cfg.HoldSends > 0 {
		if !e.recv {
			n.hold(c, e)
			return
		}
		if len(c.held) > 0 {
			c.passed++
		}
	}
	c.push(e, solicited)
	if n.cfg.HoldSends > 0 && c.passed >= n.cfg.HoldSends && len(c.held) > 0 {
		c.releaseHeld()
	}
}

func (c *CQ) push(e *entry, solicited bool) {
	if c.over.Load() {
		return
	}
	if c.sink != nil {
		e.q.polled(e) // first: the sink's owner may post again at once
		if !c.sink(e.Completion, e.recv, solicited) {
			c.overflow()
		}
		return
	}
	tail := index(c.tail.Load())
	if int(tail-c.seen) >= c.cap {
		if c.seen = index(c.head.Load()); int(tail-c.seen) >= c.cap {
			c.overflow()
			return
		}
	}
	c.ring[tail&c.mask] = *e
	c.tail.Store(uint32(tail + 1))
	if a := c.arm.Load(); a == armedNext || a == armedSolicited && (solicited || e.Status != cq.Success) {
		// The owner may arm anew meanwhile; that is for the next completion then.
		if c.arm.CompareAndSwap(a, disarmed) {
			c.nic.stats.CQEvents++
			c.notify()
		}
	}
}

// overflow drops a completion: the queue is lost, and so are its queue pairs
// (IBTA 1.4, 11.6.3.1).
func (c *CQ) overflow() {
	c.over.Store(true)
	n := c.nic
	n.stats.CQOverflows++
	n.event(Event{Type: verbs.EventCQError, CQ: c})
	c.notify()
	n.overflowed = append(n.overflowed, c)
}

// hold keeps a send completion back so that receive completions overtake it.
func (n *NIC) hold(c *CQ, e *entry) {
	c.held = append(c.held, *e)
	if !c.inList {
		c.inList = true
		n.holding = append(n.holding, c)
		n.heldUntil = n.now + holdTime
	}
}

func (c *CQ) releaseHeld() {
	for i := range c.held {
		c.push(&c.held[i], false)
	}
	c.held, c.passed = c.held[:0], 0
}

// polled gives the slot of a completed request, and those before it, back to the
// posting side, as providers of real devices do.
func (q *QP) polled(e *entry) {
	if q.life.Load() != e.life {
		return // the queue pair was reset since, and its rings with it
	}
	if e.Status != cq.Success {
		q.soft.Store(uint32(qp.Err))
	}
	if e.recv {
		q.rq.tail.Store(uint32(e.slot + 1))
	} else {
		q.sq.tail.Store(uint32(e.slot + 1))
	}
}
