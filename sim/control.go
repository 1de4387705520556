package sim

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// event passes an event of the NIC to the contexts that it concerns.
func (d *Device) event(e nic.Event) {
	v := verbs.Event{Type: e.Type, Port: e.Port}
	switch {
	case e.QP != nil:
		if q, ok := e.QP.Owner.(*QP); ok {
			v.QP = q.Num()
			q.pd.ctx.events.put(v)
		}
	case e.CQ != nil:
		if c, ok := e.CQ.Owner.(*CQ); ok {
			v.CQ = c
			c.ctx.events.put(v)
		}
	case e.SRQ != nil:
		if s, ok := e.SRQ.Owner.(*SRQ); ok {
			v.SRQ = s
			s.pd.ctx.events.put(v)
		}
	default:
		d.mu.Lock()
		all := slices.Clone(d.contexts)
		d.mu.Unlock()
		for _, c := range all {
			c.events.put(v)
		}
	}
}

// Remove takes the NIC away, as when it is unplugged: a DEVICE_FATAL event, then
// everything of it reports verbs.ErrDeviceLost. Closing still works.
func (d *Device) Remove() {
	d.node.mu.Lock()
	if !d.lost.Load() {
		d.node.nic.Lose()
		d.lost.Store(true)
		close(d.gone)
	}
	d.node.mu.Unlock()
	d.node.stop()
	d.fabric.forget(d)
}

// forget takes a device out of the fabric.
func (f *Fabric) forget(d *Device) {
	f.mu.Lock()
	if f.devices[d.info.Name] == d {
		delete(f.devices, d.info.Name)
	}
	f.detach(d)
	f.mu.Unlock()
}

// release ends a context.
func (d *Device) release(c *Context) {
	d.mu.Lock()
	i := slices.Index(d.contexts, c)
	d.contexts = slices.Delete(d.contexts, i, i+1)
	last := len(d.contexts) == 0
	d.mu.Unlock()
	if !last {
		return
	}
	d.node.mu.Lock()
	d.node.idleTimer()
	d.node.mu.Unlock()
	if d.single {
		d.fabric.forget(d)
	}
}

// SetPortState takes a port's link up (verbs.PortActive) or down, with the event.
// Packets of a port that is not active are lost. Ports count from 1.
func (d *Device) SetPortState(port int, s verbs.PortState) error {
	if err := d.checkPort("set port state", port); err != nil {
		return err
	}
	d.node.control(func() { d.node.nic.SetPortState(port, s) })
	return nil
}

// FailSharedReceives takes the shared receive queues that are open to the error state,
// each with its event, as a device does that cannot read one any more. Queue pairs that
// want a receive of theirs fail.
func (d *Device) FailSharedReceives() {
	d.mu.Lock()
	all := slices.Clone(d.shared)
	d.mu.Unlock()
	d.node.control(func() {
		for _, s := range all {
			d.node.nic.FailSRQ(s.core)
		}
	})
}

// SetGIDs replaces a port's GID table, with the event. Peers reach the new GIDs
// only.
func (d *Device) SetGIDs(port int, gids []GID) error {
	if err := d.checkPort("set GIDs", port); err != nil {
		return err
	}
	d.node.control(func() { d.node.nic.SetGIDs(port, gids) })
	d.reattach()
	return nil
}

func (d *Device) checkPort(op string, port int) error {
	if port < 1 || port > d.info.Ports {
		return d.err(op, fmt.Sprintf("of port %d", port), syscall.EINVAL, fmt.Sprintf("the device has ports 1 to %d", d.info.Ports))
	}
	return nil
}

// reattach makes the device known to the fabric by the GIDs that it has now.
func (d *Device) reattach() {
	d.gidMu.Lock()
	defer d.gidMu.Unlock()
	gids := d.gids()
	f := d.fabric
	f.mu.Lock()
	f.detach(d)
	if !d.lost.Load() {
		f.attach(d, gids)
	}
	f.mu.Unlock()
}

// gids lists the GIDs by which peers reach the device.
func (d *Device) gids() (out []verbs.GID) {
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	for port := 1; port <= d.info.Ports; port++ {
		p, _ := d.node.nic.Port(port)
		for _, g := range p.GIDs {
			if !g.GID.IsZero() && !g.Foreign {
				out = append(out, g.GID)
			}
		}
	}
	return out
}

// RefuseRegistrations makes the next n registrations of memory fail, all of them
// if n is negative, none if it is 0.
func (d *Device) RefuseRegistrations(n int) { d.refuse.Store(int64(n)) }

func (d *Device) refused() bool {
	for {
		n := d.refuse.Load()
		if n <= 0 {
			return n < 0
		}
		if d.refuse.CompareAndSwap(n, n-1) {
			return true
		}
	}
}
