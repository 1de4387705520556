//go:build linux

package rxe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
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
	notifier *uverbs.Notifier
	overflow atomic.Bool // the kernel dropped a completion

	mu       sync.Mutex // Close may come while the owner polls
	closed   bool
	q        *queue
	consumer mmio.Index // ours
}

// CreateCQ makes a completion queue.
func (c *devContext) CreateCQ(cfg verbs.CQConfig) (cq.CQ, error) {
	if err := c.Limits.CheckCQ(cfg); err != nil {
		return nil, c.Fail("create completion queue", "", err, "")
	}
	ch, err := c.K.CreateCompChannel()
	if err != nil {
		return nil, err
	}
	q := &completionQueue{ctx: c, ch: ch}
	q.user = c.EnterCQ(q)
	var resp [createCQRespSize]byte
	q.h, _, err = c.K.CreateCQ(&uverbs.CQConfig{Entries: cfg.Entries, Vector: cfg.Vector, Channel: ch, UserHandle: q.user}, &uverbs.UHW{Out: resp[:]})
	if err != nil {
		c.Leave(q.user, 0)
		ch.Close()
		return nil, err
	}
	if q.q, err = c.mapQueue("map completion queue", createCQRespMI.In(resp[:]), minCQElem); err == nil {
		q.notifier, err = c.K.NewNotifier(q.h)
	}
	if err != nil {
		q.Close()
		return nil, err
	}
	q.consumer = q.q.loadConsumer()
	return q, nil
}

// mapQueue maps a queue that the driver announced. It can be mapped only once.
func (c *devContext) mapQueue(op string, info []byte, minElem int) (*queue, error) {
	m, err := mmio.Map(c.K.FD(), int64(mapInfoOffset.Get(info)), int(mapInfoLength.Get(info)))
	if err != nil {
		return nil, c.Fail(op, "", err, "the process may be out of address space or mappings (vm.max_map_count)")
	}
	q, err := newQueue(m, minElem)
	if err != nil {
		return nil, c.Fail(op, "", err, "the kernel's rxe driver is of another kind than this program knows")
	}
	return q, nil
}

// Capacity is how many completions the queue can hold.
func (q *completionQueue) Capacity() int { return q.q.mask.Capacity() }

// Resize changes how many completions the queue can hold. The kernel moves what
// waits into a new ring; should that not be mappable, the queue has overflowed.
func (q *completionQueue) Resize(entries int) error {
	const op = "resize completion queue"
	c := q.ctx
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return c.Fail(op, "", cq.ErrClosed, "")
	}
	if err := c.Limits.CheckCQ(verbs.CQConfig{Entries: entries}); err != nil {
		return c.Fail(op, "", err, "")
	}
	var resp [resizeCQRespSize]byte
	if _, err := c.K.ResizeCQ(q.h, entries, &uverbs.UHW{Out: resp[:]}); err != nil {
		return err
	}
	n, err := c.mapQueue("map resized completion queue", resizeCQRespMI.In(resp[:]), minCQElem)
	if err != nil {
		q.overflow.Store(true)
		return err
	}
	old := q.q
	q.q, q.consumer = n, n.loadConsumer()
	return old.close()
}

// Poll moves completions into dst.
func (q *completionQueue) Poll(dst []cq.Completion) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, cq.ErrClosed
	}
	n := 0
	producer := q.q.loadProducer()
	for n < len(dst) && q.consumer != producer {
		readCompletion(q.q.elem(q.consumer), &dst[n])
		q.consumer = q.q.mask.Next(q.consumer)
		n++
	}
	if n > 0 {
		mmio.StoreUint32(q.q.consumer, uint32(q.consumer))
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
	return q.notifier.Arm(solicitedOnly)
}

// Wait blocks for the event of the last Arm, a Wake, or the end of ctx.
func (q *completionQueue) Wait(ctx context.Context) error {
	_, _, err := q.ch.Wait(ctx)
	if errors.Is(err, verbs.ErrClosed) {
		return cq.ErrClosed
	}
	return err
}

// Wake makes Wait return.
func (q *completionQueue) Wake() { q.ch.Wake() }

// Overflowed is told that a completion was dropped.
func (q *completionQueue) Overflowed() { q.overflow.Store(true) }

// Context is the context that the queue is of.
func (q *completionQueue) Context() *kdev.Context { return q.ctx.Context }

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
	if q.notifier != nil {
		q.notifier.Close()
	}
	q.ch.Close()
	return q.q.close()
}
