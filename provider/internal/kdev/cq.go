//go:build linux

package kdev

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// CQ is what the kernel knows of a completion queue, with a completion channel of its
// own. Events of the channel can only be its, so destroying it needs no wait for them.
// A provider embeds it and adds the ring, and Close by way of Destroy. All methods may
// be called by any goroutine once Create succeeded.
type CQ struct {
	Handle uverbs.CQHandle // the kernel's name of it
	User   uint64          // the handle by which the kernel names it in events

	Mu   sync.Mutex // held by whoever uses the ring: Close may come while the owner polls
	Gone bool       // destroyed; under Mu

	ctx      *Context
	ch       *uverbs.CompChannel
	overflow atomic.Bool // the device dropped a completion
}

// Create makes the queue in the kernel. self is the provider's queue, uhw the driver's
// own part of the request; channel and user handle of ask are filled in.
func (q *CQ) Create(c *Context, self CompletionQueue, ask uverbs.CQConfig, uhw *uverbs.UHW) error {
	ch, err := c.K.CreateCompChannel()
	if err != nil {
		return err
	}
	q.ctx, q.ch = c, ch
	q.User = c.enter(&object{cq: self})
	ask.Channel, ask.UserHandle = ch, q.User
	if q.Handle, _, err = c.K.CreateCQ(&ask, uhw); err != nil {
		c.Leave(q.User, 0)
		ch.Close()
	}
	return err
}

// Failure says why nothing more comes, if so.
func (q *CQ) Failure() error {
	switch {
	case q.overflow.Load():
		return cq.ErrOverflow
	case q.ctx.Lost():
		return verbs.ErrDeviceLost
	}
	return nil
}

// Wait blocks for the event of the last Arm, a Wake, or the end of ctx.
func (q *CQ) Wait(ctx context.Context) error {
	_, err := q.Await(ctx)
	return err
}

// Await is Wait, and tells whether a Wake ended it.
func (q *CQ) Await(ctx context.Context) (woken bool, err error) {
	_, woken, err = q.ch.Wait(ctx)
	if errors.Is(err, verbs.ErrClosed) {
		return woken, cq.ErrClosed
	}
	return woken, err
}

// Wake makes Wait return.
func (q *CQ) Wake() { q.ch.Wake() }

// Overflowed is told that a completion was dropped.
func (q *CQ) Overflowed() { q.overflow.Store(true) }

// Context is the context that the queue is of.
func (q *CQ) Context() *Context { return q.ctx }

// Closed reports whether the queue was closed.
func (q *CQ) Closed() bool {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	return q.Gone
}

// Destroy ends the queue in the kernel, EBUSY while a queue pair uses it, and then has
// release give back what the provider holds of it.
func (q *CQ) Destroy(release func() error) error {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.Gone {
		return cq.ErrClosed
	}
	n, err := q.ctx.K.DestroyCQ(q.Handle)
	if err := q.ctx.Destroyed(err); err != nil {
		return err
	}
	q.Gone = true
	q.ctx.Leave(q.User, n.Async)
	q.ch.Close()
	return release()
}
