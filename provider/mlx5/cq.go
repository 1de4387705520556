//go:build linux

package mlx5

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// completionQueue is a completion queue with a completion channel of its own.
// Events of the channel can only be its, so destroying it needs no wait for them.
type completionQueue struct {
	ctx      *devContext
	h        uverbs.CQHandle
	user     uint64
	ch       *uverbs.CompChannel
	m        *mmio.Mapping
	record   record
	overflow atomic.Bool // the NIC dropped a completion
	events   atomic.Uint32
	find     func(uint32) *ends

	mu     sync.Mutex // Close and forgetting a queue pair may come while the owner polls
	closed bool
	ring   cqRing
	armer  armer
}

// CreateCQ makes a completion queue.
func (c *devContext) CreateCQ(cfg verbs.CQConfig) (cq.CQ, error) {
	const op = "create completion queue"
	if err := c.Limits.CheckCQ(cfg); err != nil {
		return nil, c.Fail(op, "", err, "")
	}
	slots, err := sizeCQ(cfg.Entries)
	if err != nil {
		return nil, c.Fail(op, "", err, "")
	}
	q := &completionQueue{ctx: c, find: c.find}
	if q.record, err = c.records.take(); err == nil {
		q.m, err = mmio.Anonymous(slots * cqeSize)
	}
	if err != nil {
		q.release()
		return nil, c.Fail(op, "", err, "the process may be out of memory or mappings (vm.max_map_count)")
	}
	q.ring = cqRing{b: q.m.Bytes(), mask: uint32(slots - 1), uidx: c.answer.cqeVersion == cqeVersionUIDX, record: q.record.word(recordConsumer)}
	q.ring.prepare()
	if q.ch, err = c.K.CreateCompChannel(); err != nil {
		q.release()
		return nil, err
	}
	var page *uarPage
	if c.uars.dynamic {
		page = c.uars.cq
	}
	q.user = c.EnterCQ(q)
	var resp [createCQRespSize]byte
	q.h, _, err = c.K.CreateCQ(&uverbs.CQConfig{Entries: slots - 1, Vector: cfg.Vector, Channel: q.ch, UserHandle: q.user},
		&uverbs.UHW{In: cqRequest(mr.Addr(q.m.Bytes()), q.record.addr(), page), Out: resp[:]})
	if err != nil {
		c.Leave(q.user, 0)
		q.release()
		return nil, err
	}
	q.armer = armer{page: c.uars.cq, cqn: createCQRespCQN.Get(resp[:])}
	return q, nil
}

// release gives back what is not the kernel's.
func (q *completionQueue) release() error {
	q.ctx.records.give(q.record)
	if q.ch != nil {
		q.ch.Close()
	}
	if q.m != nil {
		return q.m.Close()
	}
	return nil
}

// Capacity is how many completions the queue can hold.
func (q *completionQueue) Capacity() int { return int(q.ring.mask) }

// Resize changes how many completions the queue can hold: not yet.
func (q *completionQueue) Resize(entries int) error {
	return q.ctx.Fail("resize completion queue", "", &verbs.UnsupportedError{Feature: "resizing completion queues", Missing: "this provider"}, "")
}

// Poll moves completions into dst.
func (q *completionQueue) Poll(dst []cq.Completion) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, cq.ErrClosed
	}
	if n := q.ring.poll(dst, q.find); n > 0 {
		q.ctx.Polled(dst[:n])
		return n, nil
	}
	switch {
	case q.overflow.Load():
		return 0, cq.ErrOverflow
	case q.ctx.Lost():
		return 0, verbs.ErrDeviceLost
	}
	return 0, nil
}

// Arm asks for one event at the next completion.
func (q *completionQueue) Arm(solicitedOnly bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return cq.ErrClosed
	}
	q.armer.sn = q.events.Load()
	q.armer.arm(q.record.word(recordArm), q.ring.next, solicitedOnly)
	return nil
}

// Wait blocks for the event of the last Arm, a Wake, or the end of ctx.
func (q *completionQueue) Wait(ctx context.Context) error {
	_, woken, err := q.ch.Wait(ctx)
	if errors.Is(err, verbs.ErrClosed) {
		return cq.ErrClosed
	}
	if err == nil && !woken {
		q.events.Add(1)
	}
	return err
}

// Wake makes Wait return.
func (q *completionQueue) Wake() { q.ch.Wake() }

// Overflowed is told that a completion was dropped.
func (q *completionQueue) Overflowed() { q.overflow.Store(true) }

// Context is the context that the queue is of.
func (q *completionQueue) Context() *kdev.Context { return q.ctx.Context }

// forget drops the completions of a queue pair that was destroyed or reset.
func (q *completionQueue) forget(e *ends) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.ring.forget(e)
	}
}

// Close destroys the queue; EBUSY while a queue pair uses it.
func (q *completionQueue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return cq.ErrClosed
	}
	n, err := q.ctx.K.DestroyCQ(q.h)
	if err := q.ctx.Destroyed(err); err != nil {
		return err
	}
	q.closed = true
	q.ctx.Leave(q.user, n.Async)
	return q.release()
}
