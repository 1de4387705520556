//go:build linux

package kdev

import (
	"context"
	"errors"

	"github.com/byteexpress/byteexpress/verbs"
)

// readEvents processes asynchronous events until the context is closed or the
// device lost: it keeps states up to date and passes the events on.
func (c *Context) readEvents() {
	defer close(c.events)
	for {
		ev, err := c.K.NextAsync(context.Background())
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

func (c *Context) pass(e verbs.Event) {
	select {
	case c.events <- e:
	default:
		c.dropped.Add(1)
	}
}

// process finds the object of an event and tells it.
func (c *Context) process(element uint64, typ verbs.EventType) verbs.Event {
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
			o.cq.Overflowed()
			o.cq.Wake()
		}
	case o.qp != nil:
		e.QP = o.qp.Num()
		switch typ {
		case verbs.EventQPFatal, verbs.EventQPRequestError, verbs.EventQPAccessError:
			o.qp.Failed()
		}
	}
	if o.srq != nil {
		e.SRQ = o.srq
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.events++ // last: from now on the object may be forgotten
	c.seen.Broadcast()
	return e
}

// lose marks the device as removed and wakes whoever waits.
func (c *Context) lose() {
	c.lost.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Broadcast()
	for _, o := range c.objects {
		if o.cq != nil {
			o.cq.Wake()
		}
		if o.qp != nil {
			o.qp.Lost()
		}
	}
}

// NextEvent blocks for the next asynchronous event. Events that came while nobody
// called it wait, up to 256.
func (c *Context) NextEvent(ctx context.Context) (verbs.Event, error) {
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

func (c *Context) ended(ok bool) error {
	switch {
	case ok:
		return nil
	case c.lost.Load():
		return c.Fail("wait for event", "", verbs.ErrDeviceLost, "close it, and open it anew when it is back")
	}
	return c.Fail("wait for event", "", verbs.ErrClosed, "")
}
