//go:build linux

package kdev

import (
	"sync"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// PD is a protection domain, but for the making of queues: [Domain].
type PD struct {
	ctx *Context
	h   uverbs.PDHandle

	mu      sync.Mutex
	regions map[uverbs.MRHandle]mr.Region
	closed  bool
}

// newPD makes a protection domain. uhw is the driver's own part of the request; it
// may be nil.
func (c *Context) newPD(uhw *uverbs.UHW) (*PD, error) {
	h, err := c.K.AllocPD(uhw)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pds++
	return &PD{ctx: c, h: h, regions: map[uverbs.MRHandle]mr.Region{}}, nil
}

// notHere is the remedy for a region that is not of the domain.
const notHere = "it is not, or no longer, registered in this domain"

// Register registers memory from mmap.
func (d *PD) Register(buf []byte, access mr.Access) (mr.Region, error) {
	if err := d.ctx.Limits.CheckMR(buf, access); err != nil {
		return mr.Region{}, d.ctx.Fail("register memory region", "", err, "")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return mr.Region{}, d.ctx.Fail("register memory region", "", verbs.ErrClosed, "")
	}
	r := mr.Region{Addr: mr.Addr(buf), Length: uint64(len(buf))}
	h, lkey, rkey, err := d.ctx.K.RegMR(d.h, r.Addr, r.Length, access, nil)
	if err != nil {
		return mr.Region{}, err
	}
	r.LKey, r.RKey, r.Handle = lkey, rkey, uint64(h)
	d.regions[h] = r
	return r, nil
}

// Deregister ends a region of this domain.
func (d *PD) Deregister(r mr.Region) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := uverbs.MRHandle(r.Handle)
	if have, ok := d.regions[h]; !ok || have != r {
		return d.ctx.Fail("deregister memory region", r.String(), verbs.ErrClosed, notHere)
	}
	if err := d.ctx.Destroyed(d.ctx.K.DeregMR(h)); err != nil {
		return err
	}
	delete(d.regions, h)
	return nil
}

// Close gives the domain back; EBUSY while regions, queue pairs or shared receive
// queues are in it.
func (d *PD) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.ctx.Fail("deallocate protection domain", "", verbs.ErrClosed, "")
	}
	if err := d.ctx.Destroyed(d.ctx.K.DeallocPD(d.h)); err != nil {
		return err
	}
	d.closed = true
	d.ctx.mu.Lock()
	d.ctx.pds--
	d.ctx.mu.Unlock()
	return nil
}
