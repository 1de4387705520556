package nic

import (
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Window is a memory window of type 2B: while it is bound, the peer of one queue
// pair reaches a range of a region by the window's key (IBTA 1.4, 10.6.7.2).
type Window struct {
	pd   *PD
	slot uint32
	rkey mr.RKey // in force, or of the last binding

	q      *QP // that bound it; nil: free
	region *Region
	addr   uint64
	length uint64
	access mr.Access
}

// windowBit tells a window's key from a region's once the mask is taken off.
const windowBit = 1 << 30

// maxWindows is how many slots a key has room for, its low byte being the owner's.
const maxWindows = 1 << 22

// windowTable maps keys to windows.
type windowTable struct {
	bySlot map[uint32]*Window
	next   uint32
}

// RKey is the key in force, or that the next binding replaces.
func (w *Window) RKey() mr.RKey { return w.rkey }

// CreateWindow makes a free window.
func (n *NIC) CreateWindow(pd *PD) (*Window, error) {
	t := &n.windows
	if len(t.bySlot) >= min(n.cfg.Attr.MaxMW, maxWindows) {
		return nil, verbs.ErrLimit
	}
	if t.bySlot == nil {
		t.bySlot = make(map[uint32]*Window)
	}
	for t.bySlot[t.next] != nil {
		t.next = (t.next + 1) % maxWindows
	}
	w := &Window{pd: pd, slot: t.next}
	t.next = (t.next + 1) % maxWindows
	w.rkey = mr.RKey((windowBit|w.slot<<8|n.cfg.Rand.Uint32()&0xff)^n.keys.mask) ^ rkeyFlip
	t.bySlot[w.slot] = w
	return w, nil
}

// DestroyWindow ends a window, bound or not.
func (n *NIC) DestroyWindow(w *Window) {
	w.unbind()
	delete(n.windows.bySlot, w.slot)
}

// Bound is how many windows are bound to the region.
func (r *Region) Bound() int { return r.bound }

// window finds the window that has this key, nil if none has.
func (n *NIC) window(k mr.RKey) *Window {
	v := uint32(k) ^ rkeyFlip ^ n.keys.mask
	if v&windowBit == 0 {
		return nil
	}
	if w := n.windows.bySlot[v&^windowBit>>8]; w != nil && w.rkey == k {
		return w
	}
	return nil
}

func (w *Window) unbind() {
	if w.q == nil {
		return
	}
	w.q.bound--
	w.region.bound--
	w.q, w.region = nil, nil
}

// unbindAll frees the windows that a queue pair has bound.
func (n *NIC) unbindAll(q *QP) {
	if q.bound == 0 {
		return
	}
	for _, w := range n.windows.bySlot {
		if w.q == q {
			w.unbind()
		}
	}
}

// bindWindow does a BIND_MW.
func (n *NIC) bindWindow(q *QP, old mr.RKey, b *qp.Bind) cq.Status {
	w, r := n.window(old), n.keys.get(b.Region)
	const stores = mr.RemoteWrite | mr.RemoteAtomic
	switch {
	case w == nil || w.pd != q.pd || w.q != nil,
		r == nil || r.pd != q.pd || r.access&mr.WindowBind == 0 || !r.Contains(b.Addr, b.Length),
		b.Access&stores != 0 && r.access&mr.LocalWrite == 0:
		return cq.MWBindError
	}
	w.q, w.region, w.addr, w.length, w.access, w.rkey = q, r, b.Addr, b.Length, b.Access, b.RKey
	q.bound++
	r.bound++
	return cq.Success
}

// mayInvalidate reports whether the key is of a window that the queue pair has bound.
func (n *NIC) mayInvalidate(q *QP, k mr.RKey) bool {
	w := n.window(k)
	return w != nil && w.q == q
}

// invalidate ends the binding of such a window: for the queue pair itself by
// LOCAL_INV, or for its peer.
func (n *NIC) invalidate(q *QP, k mr.RKey) bool {
	if !n.mayInvalidate(q, k) {
		return false
	}
	n.window(k).unbind()
	return true
}

// remoteWindow finds the region behind a window's key, nil if the peer of q may
// not do that there.
func (n *NIC) remoteWindow(q *QP, k mr.RKey, addr, length uint64, need mr.Access) *Region {
	w := n.window(k)
	if w == nil || w.q != q || w.access&need == 0 || addr < w.addr || length > w.length || addr-w.addr > w.length-length {
		return nil
	}
	return w.region
}

// runLocal does a request that sends nothing.
func (n *NIC) runLocal(q *QP, w *sendWQE) cq.Status {
	if w.op == qp.BindMW {
		return n.bindWindow(q, mr.RKey(w.rkey), &q.sq.binds[q.cur&q.sq.mask])
	}
	if !n.invalidate(q, mr.RKey(w.rkey)) {
		return cq.LocalQPOperationError
	}
	return cq.Success
}
