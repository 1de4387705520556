//go:build linux

package mlx5

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// devContext is an opened mlx5 device.
type devContext struct {
	*kdev.Context
	observer Observer
	answer   contextAnswer
	settings Settings
	uars     uars
	records  records

	// ends are the queue pairs by what completions name them, nil: to come; replaced
	// as a whole.
	ends   atomic.Pointer[map[uint32]*ends]
	endsMu sync.Mutex // held by whoever replaces it
	uidx   uint32     // last user index used
}

func newContext(k *uverbs.Context, d *Device, a contextAnswer, s Settings) (*devContext, error) {
	c := &devContext{observer: d.observer, answer: a, settings: s}
	c.ends.Store(&map[uint32]*ends{})
	c.uars.c = c
	var err error
	c.Context, err = kdev.New(k, d.Info(), func() (verbs.DeviceAttr, error) {
		a, err := queryDevice(k, &c.answer.limits)
		a.OwnDoorbells = c.answer.bfRegs == 0 // pages are asked for one by one
		return a, err
	})
	if err == nil {
		err = c.uars.open()
	}
	if err != nil {
		c.uars.close()
		return nil, err
	}
	c.BindsWindows = true
	c.Start()
	return c, nil
}

// queryDevice asks the kernel and lowers the limits to what a queue pair's rings
// can have at once: MaxQPWR requests of up to 4 segments.
func queryDevice(k *uverbs.Context, l *limits) (verbs.DeviceAttr, error) {
	a, err := k.QueryDevice()
	a.MaxInline = max(l.sendDesc-sendOverhead-inlineHeader, 0)
	a.MaxSGE = max(min(a.MaxSGE, (l.sendDesc-sendOverhead)/dataSize, l.recvDesc/dataSize), 0)
	a.MaxQPWR = min(a.MaxQPWR, l.sendBlocks*blockSize/(sendOverhead+4*dataSize), l.recvWR)
	a.MaxCQE = min(a.MaxCQE, maxCQE-1)
	a.MaxSRQWR = max(min(a.MaxSRQWR, l.sharedWR-1), 0)
	a.MaxSRQSGE = max(min(a.MaxSRQSGE, (l.recvDesc-nextSize)/dataSize), 0)
	return a, err
}

// AllocPD makes a protection domain.
func (c *devContext) AllocPD() (verbs.PD, error) {
	var pdn [allocPDRespSize]byte // not used, but the driver wants to write it
	return kdev.NewDomain(c.Context, &uverbs.UHW{Out: pdn[:]}, c.newQP, c.newSRQ)
}

// find gives the queue pair that a completion names, nil if there is none.
func (c *devContext) find(id uint32) *ends { return (*c.ends.Load())[id] }

// changeEnds replaces the table of queue pairs. Preconditions: c.endsMu is held.
func (c *devContext) changeEnds(change func(map[uint32]*ends)) {
	m := maps.Clone(*c.ends.Load())
	change(m)
	c.ends.Store(&m)
}

// newUIDX gives a user index that no queue pair has, and keeps it for one.
func (c *devContext) newUIDX() uint32 {
	c.endsMu.Lock()
	defer c.endsMu.Unlock()
	for {
		c.uidx = (c.uidx + 1) & numberMask
		if _, used := (*c.ends.Load())[c.uidx]; !used && c.uidx != numberMask {
			c.changeEnds(func(m map[uint32]*ends) { m[c.uidx] = nil })
			return c.uidx
		}
	}
}

// enterEnds makes a queue pair known by its id.
func (c *devContext) enterEnds(e *ends) {
	c.endsMu.Lock()
	defer c.endsMu.Unlock()
	c.changeEnds(func(m map[uint32]*ends) { m[e.id] = e })
}

// leaveEnds forgets a queue pair, if it was known, or an index kept for it.
func (c *devContext) leaveEnds(e *ends) {
	c.endsMu.Lock()
	defer c.endsMu.Unlock()
	if have, ok := (*c.ends.Load())[e.id]; ok && (have == e || have == nil) {
		c.changeEnds(func(m map[uint32]*ends) { delete(m, e.id) })
	}
}

// Close closes the device. It fails while protection domains, completion queues or
// queue pairs exist.
func (c *devContext) Close() error {
	if err := c.BeginClose(); err != nil {
		return err
	}
	c.uars.close()
	err := c.FinishClose()
	c.records.close()
	return err
}
