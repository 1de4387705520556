//go:build linux

package kdev

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Context is an opened kernel device. All methods may be called by any goroutine.
type Context struct {
	K      *uverbs.Context  // the kernel's context; Close closes it
	Limits verbs.DeviceAttr // they do not change while the device is open
	// BindsWindows says that the provider can bind memory windows, where the driver
	// has them. It is set before Start.
	BindsWindows bool

	info  verbs.DeviceInfo
	query func() (verbs.DeviceAttr, error)
	lost  atomic.Bool // the device was removed

	mu      sync.Mutex
	seen    *sync.Cond         // an object's count of events went up, or the reader ended
	objects map[uint64]*object // by user handle
	qps     map[cq.QPNum]QueuePair
	windows map[mr.RKey]*window // by slot
	next    uint64              // user handle
	pds     int
	closed  bool

	events  chan verbs.Event
	dropped atomic.Uint64 // events that nobody took in time
	reading sync.WaitGroup
}

// eventBacklog is how many events wait for NextEvent; more are counted and dropped.
const eventBacklog = 256

// New makes the context of a device that was opened in the kernel. query asks for
// the limits: once now and again whenever Attr is called. When New fails, k is
// still the caller's to close, and so it is until Start.
func New(k *uverbs.Context, info verbs.DeviceInfo, query func() (verbs.DeviceAttr, error)) (*Context, error) {
	limits, err := query()
	if err != nil {
		return nil, err
	}
	c := &Context{
		K: k, Limits: limits, info: info, query: query, next: 1,
		objects: map[uint64]*object{}, qps: map[cq.QPNum]QueuePair{}, windows: map[mr.RKey]*window{}, events: make(chan verbs.Event, eventBacklog),
	}
	c.seen = sync.NewCond(&c.mu)
	return c, nil
}

// Start starts the goroutine that reads asynchronous events; it runs until Close.
func (c *Context) Start() { c.reading.Go(c.readEvents) }

// Info names the device.
func (c *Context) Info() verbs.DeviceInfo { return c.info }

// Attr gives the limits.
func (c *Context) Attr() (verbs.DeviceAttr, error) {
	if c.Lost() {
		return verbs.DeviceAttr{}, c.Fail("query device", "", verbs.ErrDeviceLost, "")
	}
	return c.query()
}

// Port asks for a port's state.
func (c *Context) Port(port int) (verbs.PortAttr, error) { return c.K.QueryPort(port) }

// GIDs lists a port's GIDs.
func (c *Context) GIDs(port int) ([]verbs.GIDEntry, error) { return c.K.GIDTable(port) }

// Lost reports whether the device was removed.
func (c *Context) Lost() bool { return c.lost.Load() }

// Close closes the device: BeginClose, then FinishClose.
func (c *Context) Close() error {
	if err := c.BeginClose(); err != nil {
		return err
	}
	return c.FinishClose()
}

// BeginClose succeeds once: when no protection domain, completion queue, queue pair
// and shared receive queue exists. The error wraps EBUSY while one does, and [verbs.ErrClosed] later.
// After it a provider gives back what it holds of the kernel's context.
func (c *Context) BeginClose() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.Fail("close", "", verbs.ErrClosed, "")
	}
	if n := c.pds + len(c.objects); n > 0 {
		return c.Fail("close", "", syscall.EBUSY, "close its queue pairs, shared receive queues, completion queues and protection domains first")
	}
	c.closed = true
	return nil
}

// FinishClose closes the kernel's context and waits for the reader of events to
// end. Preconditions: BeginClose succeeded.
func (c *Context) FinishClose() error {
	err := c.K.Close()
	c.reading.Wait()
	return err
}

// Fail makes the error of an operation of this device: object and remedy may be "".
func (c *Context) Fail(op, object string, err error, remedy string) error {
	return &verbs.OpError{Op: op, Device: c.info.Name, Object: object, Err: err, Remedy: remedy}
}

// Destroyed judges a destroy request: when the device is gone, so is the object.
func (c *Context) Destroyed(err error) error {
	if errors.Is(err, verbs.ErrDeviceLost) {
		return nil
	}
	return err
}
