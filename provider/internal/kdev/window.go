//go:build linux

package kdev

import (
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// window is a memory window, as far as software knows it.
type window struct {
	mr.Window
	pd     *PD
	binder qp.Num // queue pair that was asked to bind it last; 0: none
	bound  bool   // and was not asked to invalidate it, nor was the peer, nor has failed
}

// slot is the part of a window's key that the kernel chose and a bind does not
// change. No two windows of a context have the same.
func slot(k mr.RKey) mr.RKey { return k >> 8 }

// AllocWindow makes a memory window of type 2.
func (d *PD) AllocWindow() (mr.Window, error) {
	const op = "allocate memory window"
	c := d.ctx
	if !c.BindsWindows {
		return mr.Window{}, c.Fail(op, "", &verbs.UnsupportedError{Feature: "memory windows", Missing: "the provider " + c.info.Provider}, "use regions alone")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return mr.Window{}, c.Fail(op, "", verbs.ErrClosed, "")
	}
	h, rkey, err := c.K.AllocMW(d.h)
	if err != nil {
		return mr.Window{}, err
	}
	w := mr.Window{RKey: rkey, Handle: uint64(h)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.windows[slot(rkey)] = &window{Window: w, pd: d}
	return w, nil
}

// FreeWindow frees a window of this domain.
func (d *PD) FreeWindow(w mr.Window) error {
	c := d.ctx
	d.mu.Lock() // one at a time
	defer d.mu.Unlock()
	c.mu.Lock()
	have := c.windows[slot(w.RKey)]
	c.mu.Unlock()
	if have == nil || have.Window != w || have.pd != d {
		return c.Fail("free memory window", w.String(), verbs.ErrClosed, "it is not, or no longer, a window of this domain")
	}
	if err := c.Destroyed(c.K.DeallocMW(uverbs.MWHandle(w.Handle))); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.windows[slot(w.RKey)] == have { // the kernel may have given the slot to another domain meanwhile
		delete(c.windows, slot(w.RKey))
	}
	return nil
}

// Bind notes that a queue pair is asked to bind the window with the key.
func (c *Context) Bind(k mr.RKey, num qp.Num) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.windows[slot(k)]; w != nil {
		w.binder, w.bound = num, true
	}
}

// Invalidate notes that a queue pair, itself or by its peer, invalidates the window
// with the key. It reports false if it has not bound it: a driver may take that
// badly.
func (c *Context) Invalidate(k mr.RKey, num qp.Num) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.windows[slot(k)]
	if w == nil || !w.bound || w.binder != num {
		return false
	}
	w.bound = false
	return true
}

// unbind forgets what a queue pair that failed has bound: what of it the kernel did
// is not known. Preconditions: c.mu is held.
func (c *Context) unbind(num qp.Num) {
	for _, w := range c.windows {
		if w.binder == num {
			w.bound = false
		}
	}
}

// CheckUnbound refuses to destroy a queue pair that windows may be bound to: the
// kernel would wait for them. A lost device has let go of them.
func (c *Context) CheckUnbound(num qp.Num) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, w := range c.windows {
		if w.binder == num {
			n++
		}
	}
	if n == 0 || num == 0 || c.Lost() {
		return nil
	}
	return c.Fail("destroy queue pair", "", fmt.Errorf("%w: it has bound %d memory windows", syscall.EBUSY, n), "free them first")
}
