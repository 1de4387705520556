//go:build linux

package mlx5

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// devContext is an opened mlx5 device.
type devContext struct {
	k        *uverbs.Context
	info     verbs.DeviceInfo
	observer Observer
	answer   contextAnswer
	attr     verbs.DeviceAttr // limits; they do not change while it is open
	lost     atomic.Bool      // the device was removed
	uars     uars
	records  records

	// ends are the queue pairs by what completions name them; replaced as a whole.
	ends atomic.Pointer[map[uint32]*ends]

	mu      sync.Mutex
	seen    *sync.Cond         // an object's count of events went up, or the reader ended
	objects map[uint64]*object // by user handle
	qps     map[cq.QPNum]*queuePair
	next    uint64 // user handle
	uidx    uint32 // last user index used
	pds     int
	closed  bool

	events  chan verbs.Event
	dropped atomic.Uint64 // events that nobody took in time
	reading sync.WaitGroup
}

// eventBacklog is how many events wait for NextEvent; more are counted and dropped.
const eventBacklog = 256

func newContext(k *uverbs.Context, d *Device, a contextAnswer) (*devContext, error) {
	c := &devContext{
		k: k, info: d.Info(), observer: d.observer, answer: a, next: 1,
		objects: map[uint64]*object{}, qps: map[cq.QPNum]*queuePair{}, events: make(chan verbs.Event, eventBacklog),
	}
	c.ends.Store(&map[uint32]*ends{})
	c.seen = sync.NewCond(&c.mu)
	c.uars.c = c
	var err error
	if c.attr, err = c.queryDevice(); err == nil {
		err = c.uars.open()
	}
	if err != nil {
		c.uars.close()
		return nil, err
	}
	c.reading.Go(c.readEvents)
	return c, nil
}

// queryDevice asks the kernel and lowers the limits to what a queue pair's rings
// can have at once: MaxQPWR requests of up to 4 segments.
func (c *devContext) queryDevice() (verbs.DeviceAttr, error) {
	a, err := c.k.QueryDevice()
	l := &c.answer.limits
	a.MaxInline = max(l.sendDesc-sendOverhead-inlineHeader, 0)
	a.MaxSGE = max(min(a.MaxSGE, (l.sendDesc-sendOverhead)/dataSize, l.recvDesc/dataSize), 0)
	a.MaxQPWR = min(a.MaxQPWR, l.sendBlocks*blockSize/(sendOverhead+4*dataSize), l.recvWR)
	a.MaxCQE = min(a.MaxCQE, maxCQE-1)
	return a, err
}

// Info names the device.
func (c *devContext) Info() verbs.DeviceInfo { return c.info }

// Attr gives the limits.
func (c *devContext) Attr() (verbs.DeviceAttr, error) {
	if c.lost.Load() {
		return verbs.DeviceAttr{}, c.fail("query device", "", verbs.ErrDeviceLost, "")
	}
	return c.queryDevice()
}

// Port asks for a port's state.
func (c *devContext) Port(port int) (verbs.PortAttr, error) { return c.k.QueryPort(port) }

// GIDs lists a port's GIDs.
func (c *devContext) GIDs(port int) ([]verbs.GIDEntry, error) { return c.k.GIDTable(port) }

// AllocPD makes a protection domain.
func (c *devContext) AllocPD() (verbs.PD, error) {
	var pdn [allocPDRespSize]byte // not used, but the driver wants to write it
	h, err := c.k.AllocPD(&uverbs.UHW{Out: pdn[:]})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pds++
	return &domain{ctx: c, h: h, regions: map[uverbs.MRHandle]mr.Region{}}, nil
}

// find gives the queue pair that a completion names, nil if there is none.
func (c *devContext) find(id uint32) *ends { return (*c.ends.Load())[id] }

// changeEnds replaces the table of queue pairs. Preconditions: c.mu is held.
func (c *devContext) changeEnds(change func(map[uint32]*ends)) {
	m := maps.Clone(*c.ends.Load())
	change(m)
	c.ends.Store(&m)
}

// newUIDX gives a user index that no queue pair has.
func (c *devContext) newUIDX(e *ends) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		c.uidx = (c.uidx + 1) & numberMask
		if c.uidx != numberMask && c.find(c.uidx) == nil {
			c.changeEnds(func(m map[uint32]*ends) { m[c.uidx] = e })
			return c.uidx
		}
	}
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
	c.uars.close()
	err := c.k.Close()
	c.records.close()
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
