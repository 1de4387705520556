//go:build linux

package kdev

import (
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// window is a memory window of a domain.
type window struct {
	mr.Window
	binder uint64 // user handle of the queue pair that was asked to bind it last; 0: none
}

// slot is the part of a window's key that the kernel chose and a bind does not change.
func slot(k mr.RKey) mr.RKey { return k >> 8 }

// AllocWindow makes a memory window of type 2.
func (d *PD) AllocWindow() (mr.Window, error) {
	const op = "allocate memory window"
	if !d.ctx.BindsWindows {
		return mr.Window{}, d.ctx.Fail(op, "", &verbs.UnsupportedError{Feature: "memory windows", Missing: "the provider " + d.ctx.info.Provider}, "use regions alone")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return mr.Window{}, d.ctx.Fail(op, "", verbs.ErrClosed, "")
	}
	h, rkey, err := d.ctx.K.AllocMW(d.h)
	if err != nil {
		return mr.Window{}, err
	}
	w := mr.Window{RKey: rkey, Handle: uint64(h)}
	d.windows[slot(rkey)] = &window{Window: w}
	return w, nil
}

// FreeWindow frees a window of this domain.
func (d *PD) FreeWindow(w mr.Window) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if have := d.windows[slot(w.RKey)]; have == nil || have.Window != w {
		return d.ctx.Fail("free memory window", w.String(), verbs.ErrClosed, "it is not, or no longer, a window of this domain")
	}
	if err := d.ctx.Destroyed(d.ctx.K.DeallocMW(uverbs.MWHandle(w.Handle))); err != nil {
		return err
	}
	delete(d.windows, slot(w.RKey))
	return nil
}

// Bind notes that the queue pair of that user handle is asked to bind the window
// with the key.
func (d *PD) Bind(k mr.RKey, user uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.windows[slot(k)]; w != nil {
		w.binder = user
	}
}

// CheckUnbound refuses to destroy a queue pair that windows may be bound to: the
// kernel would wait for them. A lost device has let go of them.
func (d *PD) CheckUnbound(user uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, w := range d.windows {
		if w.binder == user {
			n++
		}
	}
	if n == 0 || d.ctx.Lost() {
		return nil
	}
	return d.ctx.Fail("destroy queue pair", "", fmt.Errorf("%w: it has bound %d memory windows", syscall.EBUSY, n), "free them first")
}
