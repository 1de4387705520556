//go:build linux

package mlx5

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// completionQueue is a completion queue.
type completionQueue struct {
	kdev.CQ
	ctx    *devContext
	m      *mmio.Mapping
	record record
	events atomic.Uint32
	find   func(uint32) *ends

	// Under Mu: a queue pair may be forgotten while the owner polls.
	ring  cqRing
	armer armer
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
	var page *uarPage
	if c.uars.dynamic {
		page = c.uars.cq
	}
	var resp [createCQRespSize]byte
	err = q.Create(c.Context, q, uverbs.CQConfig{Entries: slots - 1, Vector: cfg.Vector},
		&uverbs.UHW{In: cqRequest(mr.Addr(q.m.Bytes()), q.record.addr(), c.settings.entry(), page), Out: resp[:]})
	if err != nil {
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
	return unmap(q.m)
}

// Capacity is how many completions the queue can hold.
func (q *completionQueue) Capacity() int { return int(q.ring.mask) }

// Resize changes how many completions the queue can hold. The NIC says in the old
// ring where it went on in the new one. Should it not, the queue is as one that has
// overflowed.
func (q *completionQueue) Resize(entries int) error {
	const op = "resize completion queue"
	c := q.ctx
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.Gone {
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
	if _, err := c.K.ResizeCQ(q.Handle, slots-1, &uverbs.UHW{In: resizeRequest(mr.Addr(m.Bytes()), c.settings.entry())}); err != nil {
		m.Close()
		return err
	}
	old := q.m
	q.m = m // the NIC writes there from now on, whatever follows
	if !q.ring.moveTo(&ring) {
		q.ring = ring
		q.Overflowed()
		old.Close()
		return c.Fail(op, what, errors.New("the old ring has no entry that tells of it, or more entries than the new one holds"), "close the queue and make another")
	}
	return old.Close()
}

// Poll moves completions into dst.
func (q *completionQueue) Poll(dst []cq.Completion) (n int, err error) {
	q.Mu.Lock()
	if q.Gone {
		err = cq.ErrClosed
	} else if n = q.ring.poll(dst, q.find); n > 0 {
		q.ctx.Polled(dst[:n])
	} else {
		err = q.failure()
	}
	q.Mu.Unlock()
	return n, err
}

// failure says why nothing more comes, if so.
func (q *completionQueue) failure() error {
	if q.ring.broken {
		return errCompressed
	}
	return q.Failure()
}

// Arm asks for one event at the next completion.
func (q *completionQueue) Arm(solicitedOnly bool) error {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.Gone {
		return cq.ErrClosed
	}
	q.armer.sn = q.events.Load()
	q.armer.arm(q.record.word(recordArm), q.ring.next, solicitedOnly)
	return nil
}

// Wait blocks for the event of the last Arm, a Wake, or the end of ctx.
func (q *completionQueue) Wait(ctx context.Context) error {
	woken, err := q.Await(ctx)
	if err == nil && !woken {
		q.events.Add(1)
	}
	return err
}

// forget drops the completions of a queue pair that was destroyed or reset.
func (q *completionQueue) forget(e *ends) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if !q.Gone {
		q.ring.forget(e)
	}
}

// Close destroys the queue; EBUSY while a queue pair uses it.
func (q *completionQueue) Close() error { return q.Destroy(q.release) }
