//go:build linux

package mlx5

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

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
		err = q.allocate(slots, &q.m, &q.ring)
	}
	if err != nil {
		q.release()
		return nil, c.Fail(op, "", err, "the process may be out of memory or mappings (vm.max_map_count)")
	}
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
		&uverbs.UHW{In: cqRequest(mr.Addr(q.m.Bytes()), q.record.addr(), c.settings.entry(), page), Out: resp[:]})
	if err != nil {
		c.Leave(q.user, 0)
		q.release()
		return nil, err
	}
	q.armer = armer{page: c.uars.cq, cqn: createCQRespCQN.Get(resp[:])}
	return q, nil
}

// allocate makes a ring of so many slots on memory of its own.
func (q *completionQueue) allocate(slots int, m **mmio.Mapping, ring *cqRing) (err error) {
	c := q.ctx
	n := slots * c.settings.entry()
	if *m, err = queueMemory(n, c.settings.CompletionPages); err != nil {
		return err
	}
	*ring = newCQRing((*m).Bytes()[:n:n], c.settings.entry(), c.answer.cqeVersion == cqeVersionUIDX, q.record.word(recordConsumer))
	return nil
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

// Resize changes how many completions the queue can hold. The NIC says in the old
// ring where it went on in the new one. Should it not, the queue is as one that has
// overflowed.
func (q *completionQueue) Resize(entries int) error {
	const op = "resize completion queue"
	c := q.ctx
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return c.Fail(op, "", cq.ErrClosed, "")
	}
	what := fmt.Sprintf("to %d entries", entries)
	if err := c.Limits.CheckCQ(verbs.CQConfig{Entries: entries}); err != nil {
		return c.Fail(op, what, err, "")
	}
	slots, err := sizeCQ(entries)
	switch n := q.ring.waiting(); {
	case err != nil:
		return c.Fail(op, what, err, "")
	case n > entries:
		return c.Fail(op, what, fmt.Errorf("%w: %d completions wait", syscall.EINVAL, n), "poll first")
	case slots == q.Capacity()+1:
		return nil
	}
	var m *mmio.Mapping
	var ring cqRing
	if err := q.allocate(slots, &m, &ring); err != nil {
		return c.Fail(op, what, err, "the process may be out of memory or mappings (vm.max_map_count)")
	}
	if _, err := c.K.ResizeCQ(q.h, slots-1, &uverbs.UHW{In: resizeRequest(mr.Addr(m.Bytes()), c.settings.entry())}); err != nil {
		m.Close()
		return err
	}
	old := q.m
	q.m = m // the NIC writes there from now on, whatever follows
	if !q.ring.moveTo(&ring) {
		q.ring = ring
		q.overflow.Store(true)
		old.Close()
		return c.Fail(op, what, errors.New("the old ring has no entry that tells of it, or more entries than the new one holds"), "close the queue and make another")
	}
	return old.Close()
}

// Poll moves completions into dst.
func (q *completionQueue) Poll(dst []cq.Completion) (n int, err error) {
	q.mu.Lock()
	if q.closed {
		err = cq.ErrClosed
	} else if n = q.ring.poll(dst, q.find); n > 0 {
		q.ctx.Polled(dst[:n])
	} else {
		err = q.failure()
	}
	q.mu.Unlock()
	return n, err
}

// failure says why nothing more comes, if so.
func (q *completionQueue) failure() error {
	switch {
	case q.ring.broken:
		return errCompressed
	case q.overflow.Load():
		return cq.ErrOverflow
	case q.ctx.Lost():
		return verbs.ErrDeviceLost
	}
	return nil
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

// Closed reports whether the queue was closed.
func (q *completionQueue) Closed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
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
