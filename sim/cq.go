package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// CQ is a completion queue, a cq.CQ.
type CQ struct {
	ctx    *Context
	core   *nic.CQ
	bytes  uint64        // of the memory limit
	signal chan struct{} // holds one event or Wake
	closed chan struct{}
	shut   atomic.Bool
	mu     sync.Mutex // one Close at a time
}

// Capacity is how many completions the queue can hold.
func (c *CQ) Capacity() int { return c.core.Capacity() }

// Resize changes how many completions the queue can hold.
func (c *CQ) Resize(entries int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.ctx.dev
	const op = "resize completion queue"
	what := fmt.Sprintf("to %d entries", entries)
	if err := c.err(); err != nil {
		return d.err(op, what, err, "")
	}
	if err := d.attr.CheckCQ(verbs.CQConfig{Entries: entries}); err != nil {
		return d.err(op, what, err, "")
	}
	bytes := cqBytes(entries)
	if err := d.lock(bytes, op, what); err != nil {
		return err
	}
	d.node.mu.Lock()
	err := c.core.Resize(entries)
	d.node.mu.Unlock()
	if err != nil {
		d.unlock(bytes)
		return d.err(op, what, err, "poll first")
	}
	d.unlock(c.bytes)
	c.bytes = bytes
	return nil
}

// Poll moves completions into dst. What was added before an overflow or the loss
// of the device is still delivered.
func (c *CQ) Poll(dst []cq.Completion) (int, error) {
	n := c.core.Poll(dst)
	if n > 0 || len(dst) == 0 {
		return n, nil
	}
	return 0, c.err()
}

// err is why an empty queue stays empty, nil if it may fill.
func (c *CQ) err() error {
	switch {
	case c.shut.Load():
		return cq.ErrClosed
	case c.core.Overflowed():
		return cq.ErrOverflow
	case c.ctx.dev.lost.Load():
		return verbs.ErrDeviceLost
	}
	return nil
}

// Arm asks for one event.
func (c *CQ) Arm(solicitedOnly bool) error {
	if err := c.err(); err != nil {
		return err
	}
	c.core.Arm(solicitedOnly)
	return nil
}

// Wait blocks until an event, a Wake, the end of ctx, Close, or the loss of the
// device.
func (c *CQ) Wait(ctx context.Context) error {
	select {
	case <-c.signal:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return cq.ErrClosed
	case <-c.ctx.dev.gone:
		return verbs.ErrDeviceLost
	}
}

// Wake makes this or the next Wait return.
func (c *CQ) Wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// Close destroys the queue.
func (c *CQ) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.ctx.dev
	if c.shut.Load() {
		return d.err("close completion queue", "", cq.ErrClosed, "")
	}
	d.node.mu.Lock()
	users := c.core.Users()
	if users == 0 {
		c.shut.Store(true)
	}
	d.node.mu.Unlock()
	if users > 0 {
		return d.err("close completion queue", "", fmt.Errorf("%w: %d ends of queue pairs use it", syscall.EBUSY, users), "close them first")
	}
	close(c.closed)
	d.unlock(c.bytes)
	d.mu.Lock()
	d.cqs--
	d.mu.Unlock()
	c.ctx.mu.Lock()
	c.ctx.cqs--
	c.ctx.mu.Unlock()
	return nil
}
