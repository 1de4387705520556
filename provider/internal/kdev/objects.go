//go:build linux

package kdev

import (
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// QueuePair is what a context wants of a provider's queue pair.
type QueuePair interface {
	// Num is the number; 0 until the kernel made it.
	Num() qp.Num
	// Failed says that an event or a completion told of the state ERR. It may
	// come from any goroutine, and again for the same failure.
	Failed()
	// Lost says that the device is gone: the state is ERR. It must not block, nor
	// call the context.
	Lost()
}

// CompletionQueue is what a context wants of a provider's completion queue. Wake
// must not block, nor call the context.
type CompletionQueue interface {
	cq.CQ
	// Overflowed says that the device dropped a completion; a Wake follows.
	Overflowed()
	// Context is the context that it was made in.
	Context() *Context
	// Closed reports whether Close succeeded: its handle may be another's by now.
	Closed() bool
}

// SharedQueue is what a context wants of a provider's shared receive queue.
type SharedQueue interface {
	qp.SRQ
	// Domain is the protection domain that it was made in.
	Domain() *PD
	// Closed reports whether Close succeeded: its handle may be another's by now.
	Closed() bool
}

// object is a queue pair, completion queue or shared receive queue in the table of user handles, by
// which the kernel names it in events. Handles are never used twice.
type object struct {
	qp     QueuePair
	cq     CompletionQueue
	srq    SharedQueue
	events uint32 // processed
}

// enter reserves a user handle for a new object. Leave gives it back.
func (c *Context) enter(o *object) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.next
	c.next++
	c.objects[h] = o
	return h
}

// Numbered makes a new queue pair known by the number that the kernel gave it.
func (c *Context) Numbered(q QueuePair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.qps[q.Num()] = q
}

// Leave forgets an object that the kernel has destroyed or not made, after every
// event of it that the kernel handed out was processed: as many as it reported.
func (c *Context) Leave(handle uint64, reported uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[handle]
	for o.events < reported && !c.lost.Load() {
		c.seen.Wait()
	}
	delete(c.objects, handle)
	if o.qp != nil && c.qps[o.qp.Num()] == o.qp {
		delete(c.qps, o.qp.Num())
	}
}

// Polled tells the queue pairs of those completions that are errors, and notes
// windows that a peer invalidated. It is for a completion queue's Poll, and does not
// allocate.
func (c *Context) Polled(cs []cq.Completion) {
	for i := range cs {
		if cs[i].Status != cq.Success {
			c.failed(cs[i].QPNum)
		} else if cs[i].Flags&cq.HasInvalidate != 0 {
			c.Invalidate(mr.RKey(cs[i].Imm), cs[i].QPNum)
		}
	}
}

func (c *Context) failed(num cq.QPNum) {
	c.mu.Lock()
	q := c.qps[num]
	c.unbind(num)
	c.mu.Unlock()
	if q != nil {
		q.Failed()
	}
}
