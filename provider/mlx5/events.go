//go:build linux

package mlx5

import (
	"context"
	"errors"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// object is a queue pair or completion queue in the table of user handles, by
// which the kernel names it in events. Handles are never used twice.
type object struct {
	qp     *queuePair
	cq     *completionQueue
	events uint32 // processed
}

// enter reserves a user handle for a new object.
func (c *devContext) enter(o *object) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.next
	c.next++
	c.objects[h] = o
	return h
}

// leave forgets an object that the kernel has destroyed, after every event of it
// that the kernel handed out was processed.
func (c *devContext) leave(handle uint64, reported uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[handle]
	for o.events < reported && !c.lost.Load() {
		c.seen.Wait()
	}
	delete(c.objects, handle)
	if o.qp != nil && c.qps[o.qp.num] == o.qp {
		delete(c.qps, o.qp.num)
	}
}

// readEvents processes asynchronous events until the context is closed or the
// device lost: it keeps states up to date and passes the events on.
func (c *devContext) readEvents() {
	defer close(c.events)
	for {
		ev, err := c.k.NextAsync(context.Background())
		if errors.Is(err, verbs.ErrClosed) {
			return
		}
		if err != nil { // removed, or a descriptor that cannot be read: no use either
			c.lose()
			return
		}
		c.pass(c.process(ev.Element, ev.Type))
	}
}

func (c *devContext) pass(e verbs.Event) {
	select {
	case c.events <- e:
	default:
		c.dropped.Add(1)
	}
}

// process finds the object of an event and tells it.
func (c *devContext) process(element uint64, typ verbs.EventType) verbs.Event {
	e := verbs.Event{Type: typ}
	switch typ {
	case verbs.EventPortActive, verbs.EventPortError, verbs.EventLIDChange, verbs.EventPKeyChange, verbs.EventSMChange,
		verbs.EventClientReregister, verbs.EventGIDChange:
		e.Port = int(element)
		return e
	case verbs.EventDeviceFatal:
		return e
	}
	c.mu.Lock()
	o := c.objects[element]
	c.mu.Unlock()
	if o == nil {
		return e
	}
	switch {
	case o.cq != nil:
		e.CQ = o.cq
		if typ == verbs.EventCQError {
			o.cq.overflow.Store(true)
			o.cq.Wake()
		}
	case o.qp != nil:
		e.QP = o.qp.num
		switch typ {
		case verbs.EventQPFatal, verbs.EventQPRequestError, verbs.EventQPAccessError:
			o.qp.failed()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.events++ // last: from now on the object may be forgotten
	c.seen.Broadcast()
	return e
}

// lose marks the device as removed and wakes whoever waits.
func (c *devContext) lose() {
	c.lost.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Broadcast()
	for _, o := range c.objects {
		if o.cq != nil {
			o.cq.Wake()
		}
		if o.qp != nil {
			o.qp.state.Store(uint32(qp.Err))
		}
	}
}

// NextEvent blocks for the next asynchronous event. Events that came while nobody
// called it wait, up to 256.
func (c *devContext) NextEvent(ctx context.Context) (verbs.Event, error) {
	select {
	case e, ok := <-c.events:
		return e, c.ended(ok)
	default:
	}
	select {
	case e, ok := <-c.events:
		return e, c.ended(ok)
	case <-ctx.Done():
		return verbs.Event{}, ctx.Err()
	}
}

func (c *devContext) ended(ok bool) error {
	switch {
	case ok:
		return nil
	case c.lost.Load():
		return c.fail("wait for event", "", verbs.ErrDeviceLost, "close it, and open it anew when it is back")
	}
	return c.fail("wait for event", "", verbs.ErrClosed, "")
}

// failedQP tells a queue pair that an error completion of it was polled.
func (c *devContext) failedQP(num cq.QPNum) {
	c.mu.Lock()
	q := c.qps[num]
	c.mu.Unlock()
	if q != nil {
		q.failed()
	}
}
