package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// Context is an opened device, a verbs.Context.
type Context struct {
	dev    *Device
	events events

	mu     sync.Mutex
	closed bool
	pds    int
	cqs    int
}

// Info names the device.
func (c *Context) Info() verbs.DeviceInfo { return c.dev.info }

// Device is the device, for its control methods and counters.
func (c *Context) Device() *Device { return c.dev }

// Counters gives the NIC's counters by name.
func (c *Context) Counters() map[string]uint64 { return c.dev.Counters() }

// check is nil, or why the context cannot be used.
func (c *Context) check(op, object string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.dev.err(op, object, verbs.ErrClosed, "")
	}
	return c.dev.check(op, object)
}

// Attr gives the device's limits.
func (c *Context) Attr() (verbs.DeviceAttr, error) {
	return c.dev.attr, c.check("query device", "")
}

// Port gives a port's state; ports count from 1.
func (c *Context) Port(port int) (verbs.PortAttr, error) {
	what := fmt.Sprintf("port %d", port)
	if err := c.check("query", what); err != nil {
		return verbs.PortAttr{}, err
	}
	c.dev.node.mu.Lock()
	p, ok := c.dev.node.nic.Port(port)
	c.dev.node.mu.Unlock()
	if !ok {
		return verbs.PortAttr{}, c.dev.err("query", what, syscall.EINVAL, fmt.Sprintf("the device has ports 1 to %d", c.dev.info.Ports))
	}
	return p.PortAttr, nil
}

// GIDs lists the port's GIDs by ascending index.
func (c *Context) GIDs(port int) ([]verbs.GIDEntry, error) {
	if _, err := c.Port(port); err != nil {
		return nil, err
	}
	c.dev.node.mu.Lock()
	p, _ := c.dev.node.nic.Port(port)
	c.dev.node.mu.Unlock()
	var out []verbs.GIDEntry
	for _, g := range p.GIDs {
		if !g.GID.IsZero() {
			out = append(out, g.GIDEntry)
		}
	}
	slices.SortFunc(out, func(a, b verbs.GIDEntry) int { return a.Index - b.Index })
	return out, nil
}

// AllocPD makes a protection domain.
func (c *Context) AllocPD() (verbs.PD, error) {
	if err := c.check("allocate protection domain", ""); err != nil {
		return nil, err
	}
	if !c.dev.count(&c.dev.pds, c.dev.attr.MaxPD) {
		return nil, c.dev.err("allocate protection domain", "", verbs.ErrLimit, fmt.Sprintf("the device has at most %d", c.dev.attr.MaxPD))
	}
	c.mu.Lock()
	c.pds++
	c.mu.Unlock()
	return &PD{ctx: c}, nil
}

// CreateCQ makes a completion queue.
func (c *Context) CreateCQ(cfg verbs.CQConfig) (cq.CQ, error) {
	q, err := c.createCQ(cfg, nil)
	if err != nil {
		return nil, err
	}
	return q, nil
}

// CreateSinkCQ makes a completion queue for a model of other hardware: completions
// go to the sink, and Poll finds none.
func (c *Context) CreateSinkCQ(cfg verbs.CQConfig, sink nic.Sink) (*CQ, error) {
	return c.createCQ(cfg, sink)
}

func (c *Context) createCQ(cfg verbs.CQConfig, sink nic.Sink) (*CQ, error) {
	what := fmt.Sprintf("completion queue of %d entries", cfg.Entries)
	if err := c.check("create", what); err != nil {
		return nil, err
	}
	if err := c.dev.attr.CheckCQ(cfg); err != nil {
		return nil, c.dev.err("create", what, err, "")
	}
	q := &CQ{ctx: c, signal: make(chan struct{}, 1), closed: make(chan struct{})}
	q.bytes = cqBytes(cfg.Entries)
	if err := c.dev.lock(q.bytes, "create", what); err != nil {
		return nil, err
	}
	if !c.dev.count(&c.dev.cqs, c.dev.attr.MaxCQ) {
		c.dev.unlock(q.bytes)
		return nil, c.dev.err("create", what, verbs.ErrLimit, fmt.Sprintf("the device has at most %d", c.dev.attr.MaxCQ))
	}
	c.dev.node.mu.Lock()
	if sink != nil {
		q.core = c.dev.node.nic.CreateSinkCQ(cfg.Entries, q.Wake, sink)
	} else {
		q.core = c.dev.node.nic.CreateCQ(cfg.Entries, q.Wake)
	}
	q.core.Owner = q
	c.dev.node.mu.Unlock()
	c.mu.Lock()
	c.cqs++
	c.mu.Unlock()
	return q, nil
}

// NextEvent waits for the next asynchronous event of the device or of an object
// of this context.
func (c *Context) NextEvent(ctx context.Context) (verbs.Event, error) {
	for {
		if e, ok := c.events.take(); ok {
			return e, nil
		}
		c.mu.Lock()
		closed := c.closed
		c.mu.Unlock()
		switch {
		case closed:
			return verbs.Event{}, c.dev.err("wait for an event", "", verbs.ErrClosed, "")
		case c.dev.lost.Load():
			if e, ok := c.events.take(); ok { // the last may have come just now
				return e, nil
			}
			return verbs.Event{}, c.dev.err("wait for an event", "", verbs.ErrDeviceLost, "")
		}
		select {
		case <-c.events.signal:
		case <-c.dev.gone:
		case <-ctx.Done():
			return verbs.Event{}, errors.WithStack(ctx.Err())
		}
	}
}

// Close gives the device back.
func (c *Context) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.dev.err("close device", "", verbs.ErrClosed, "")
	}
	if c.pds+c.cqs > 0 {
		err := fmt.Errorf("%w: %d protection domains and %d completion queues are open", syscall.EBUSY, c.pds, c.cqs)
		c.mu.Unlock()
		return c.dev.err("close device", "", err, "close them first")
	}
	c.closed = true
	c.mu.Unlock()
	c.events.wake()
	c.dev.release(c)
	return nil
}

// events is the queue of a context's asynchronous events.
type events struct {
	mu     sync.Mutex
	queue  []verbs.Event
	signal chan struct{}
}

// maxEvents bounds the events that nobody fetches; later ones are lost.
const maxEvents = 1 << 16

func (e *events) init() { e.signal = make(chan struct{}, 1) }

func (e *events) put(v verbs.Event) {
	e.mu.Lock()
	if len(e.queue) < maxEvents {
		e.queue = append(e.queue, v)
	}
	e.mu.Unlock()
	e.wake()
}

func (e *events) wake() {
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

func (e *events) take() (verbs.Event, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		e.queue = nil
		return verbs.Event{}, false
	}
	v := e.queue[0]
	e.queue = e.queue[1:]
	if len(e.queue) > 0 {
		e.wake()
	}
	return v, true
}
