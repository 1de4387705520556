package sim

import (
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// window is a memory window as it was handed out.
type window struct {
	mr.Window
	core *nic.Window
}

// Reregister changes a region, as verbs.Memory. With new memory the keys change.
func (p *PD) Reregister(region mr.Region, buf []byte, access mr.Access) (mr.Region, error) {
	const op = "change memory region"
	d := p.ctx.dev
	if err := p.check(op, region.String()); err != nil {
		return mr.Region{}, err
	}
	if buf != nil {
		next, err := p.Register(buf, access)
		if err != nil {
			return mr.Region{}, err
		}
		if err := p.Deregister(region); err != nil {
			p.Deregister(next)
			return mr.Region{}, err
		}
		return next, nil
	}
	if err := access.Check(); err != nil {
		return mr.Region{}, d.err(op, region.String(), err, "")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.region(region, op)
	if err != nil {
		return mr.Region{}, err
	}
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	if n := r.Bound(); n > 0 {
		return mr.Region{}, d.err(op, region.String(), fmt.Errorf("%w: %d memory windows are bound to it", syscall.EBUSY, n), "invalidate or free them first")
	}
	r.SetAccess(access)
	return region, nil
}

// RegisterDMABuf is not supported: there is no memory but this process's.
func (p *PD) RegisterDMABuf(verbs.DMABuf, mr.Access) (mr.Region, error) {
	return mr.Region{}, p.ctx.dev.err("register dmabuf memory region", "", &verbs.UnsupportedError{Feature: "dmabuf memory regions", Missing: "the simulator"}, "")
}

// Advise is not supported: the simulator pins nothing and pages nothing in.
func (p *PD) Advise(mr.Advice, bool, []qp.SGE) error {
	return p.ctx.dev.err("advise on memory region", "", &verbs.UnsupportedError{Feature: "on-demand paging", Missing: "the simulator"}, "")
}

// AllocWindow makes a memory window, as verbs.Memory.
func (p *PD) AllocWindow() (mr.Window, error) {
	const op = "allocate memory window"
	d := p.ctx.dev
	if err := p.check(op, ""); err != nil {
		return mr.Window{}, err
	}
	if !d.attr.Flags.Windows() {
		return mr.Window{}, d.err(op, "", &verbs.UnsupportedError{Feature: "memory windows", Missing: "this simulated device"}, "")
	}
	d.node.mu.Lock()
	core, err := d.node.nic.CreateWindow(&p.core)
	d.node.mu.Unlock()
	if err != nil {
		return mr.Window{}, d.err(op, "", err, fmt.Sprintf("the device has at most %d", d.attr.MaxMW))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle++
	w := window{mr.Window{RKey: core.RKey(), Handle: p.handle}, core}
	if p.windows == nil {
		p.windows = make(map[uint64]window)
	}
	p.windows[p.handle] = w
	return w.Window, nil
}

// FreeWindow frees a window, as verbs.Memory.
func (p *PD) FreeWindow(w mr.Window) error {
	d := p.ctx.dev
	p.mu.Lock()
	defer p.mu.Unlock()
	have, ok := p.windows[w.Handle]
	if !ok || have.Window != w {
		return d.err("free memory window", w.String(), fmt.Errorf("%w: no such window here", verbs.ErrClosed), "")
	}
	delete(p.windows, w.Handle)
	d.node.mu.Lock()
	d.node.nic.DestroyWindow(have.core)
	d.node.mu.Unlock()
	return nil
}

var _ verbs.Memory = (*PD)(nil)
