//go:build linux

package rxe

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

// devContext is an opened rxe device.
type devContext struct {
	k    *uverbs.Context
	info verbs.DeviceInfo
	attr verbs.DeviceAttr // limits; they do not change while it is open
	lost atomic.Bool      // the device was removed

	mu      sync.Mutex
	seen    *sync.Cond         // an object's count of events went up, or the reader ended
	objects map[uint64]*object // by user handle
	qps     map[cq.QPNum]*queuePair
	next    uint64 // user handle
	pds     int
	closed  bool

	events  chan verbs.Event
	dropped atomic.Uint64 // events that nobody took in time
	reading sync.WaitGroup
}

// eventBacklog is how many events wait for NextEvent; more are counted and dropped.
const eventBacklog = 256

func newContext(k *uverbs.Context, info verbs.DeviceInfo, attr verbs.DeviceAttr) *devContext {
	c := &devContext{
		k: k, info: info, attr: attr, next: 1,
		objects: map[uint64]*object{}, qps: map[cq.QPNum]*queuePair{}, events: make(chan verbs.Event, eventBacklog),
	}
	c.seen = sync.NewCond(&c.mu)
	c.reading.Go(c.readEvents)
	return c
}

// Info names the device.
func (c *devContext) Info() verbs.DeviceInfo { return c.info }

// Attr gives the limits.
func (c *devContext) Attr() (verbs.DeviceAttr, error) {
	if c.lost.Load() {
		return verbs.DeviceAttr{}, c.fail("query device", "", verbs.ErrDeviceLost, "")
	}
	return c.k.QueryDevice()
}

// Port asks for a port's state.
func (c *devContext) Port(port int) (verbs.PortAttr, error) { return c.k.QueryPort(port) }

// GIDs lists a port's GIDs.
func (c *devContext) GIDs(port int) ([]verbs.GIDEntry, error) { return c.k.GIDTable(port) }

// AllocPD makes a protection domain.
func (c *devContext) AllocPD() (verbs.PD, error) {
	h, err := c.k.AllocPD(nil)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pds++
	return &domain{ctx: c, h: h, regions: map[uverbs.MRHandle]mr.Region{}}, nil
}

// Close closes the device. It fails while protection domains, completion queues or
// queue pairs exist.
func (c *devContext) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.fail("close", "", verbs.ErrClosed, "")
	}
	if n := c.pds + len(c.objects); n > 0 {
		c.mu.Unlock()
		return c.fail("close", "", syscall.EBUSY, "close its queue pairs, completion queues and protection domains first")
	}
	c.closed = true
	c.mu.Unlock()
	err := c.k.Close()
	c.reading.Wait()
	return err
}

func (c *devContext) fail(op, object string, err error, remedy string) error {
	return &verbs.OpError{Op: op, Device: c.info.Name, Object: object, Err: err, Remedy: remedy}
}

// destroyed judges a destroy request: when the device is gone, so is the object.
func (c *devContext) destroyed(err error) error {
	if errors.Is(err, verbs.ErrDeviceLost) {
		return nil
	}
	return err
}
