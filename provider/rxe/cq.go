//go:build linux

package rxe

import (
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// completionQueue is a completion queue.
type completionQueue struct {
	kdev.CQ
	ctx      *devContext
	notifier *uverbs.Notifier

	// Under Mu.
	q        *queue
	consumer mmio.Index // ours
}

// CreateCQ makes a completion queue.
func (c *devContext) CreateCQ(cfg verbs.CQConfig) (cq.CQ, error) {
	if err := c.Limits.CheckCQ(cfg); err != nil {
		return nil, c.Fail("create completion queue", "", err, "")
	}
	q := &completionQueue{ctx: c}
	var resp [createCQRespSize]byte
	err := q.Create(c.Context, q, uverbs.CQConfig{Entries: cfg.Entries, Vector: cfg.Vector}, &uverbs.UHW{Out: resp[:]})
	if err != nil {
		return nil, err
	}
	if q.q, err = c.mapQueue("map completion queue", createCQRespMI.In(resp[:]), minCQElem); err == nil {
		q.notifier, err = c.K.NewNotifier(q.Handle)
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
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.Gone {
		return c.Fail(op, "", cq.ErrClosed, "")
	}
	if err := c.Limits.CheckCQ(verbs.CQConfig{Entries: entries}); err != nil {
		return c.Fail(op, "", err, "")
	}
	var resp [resizeCQRespSize]byte
	if _, err := c.K.ResizeCQ(q.Handle, entries, &uverbs.UHW{Out: resp[:]}); err != nil {
		return err
	}
	n, err := c.mapQueue("map resized completion queue", resizeCQRespMI.In(resp[:]), minCQElem)
	if err != nil {
		q.Overflowed()
		return err
	}
	old := q.q
	q.q, q.consumer = n, n.loadConsumer()
	return old.close()
}

// Poll moves completions into dst.
func (q *completionQueue) Poll(dst []cq.Completion) (int, error) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.Gone {
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
	return 0, q.Failure()
}

// Arm asks for one event at the next completion.
func (q *completionQueue) Arm(solicitedOnly bool) error {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.Gone {
		return cq.ErrClosed
	}
	return q.notifier.Arm(solicitedOnly)
}

// Close destroys the queue; EBUSY while a queue pair uses it.
func (q *completionQueue) Close() error {
	return q.Destroy(func() error {
		if q.notifier != nil {
			q.notifier.Close()
		}
		return q.q.close()
	})
}
