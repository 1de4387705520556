//go:build linux

package kdev

import (
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
)

// lifetime is what queue pairs and shared receive queues have in common: other
// goroutines may post while one changes or destroys them.
type lifetime struct {
	User uint64 // the handle by which the kernel names the object in events

	ctx     *Context
	control sync.Mutex // held by whatever uses the kernel's handle, but posts
	closed  atomic.Bool
}

// Closed reports whether the object was destroyed: its handle may be another's by now.
func (l *lifetime) Closed() bool { return l.closed.Load() }

// open refuses an operation on an object that was destroyed.
func (l *lifetime) open(op, object string) error {
	if l.closed.Load() {
		return l.ctx.Fail(op, object, qp.ErrClosed, "")
	}
	return nil
}

// end destroys the object by the request and forgets it.
func (l *lifetime) end(op, object string, request func() (uverbs.Reported, error)) error {
	n, err := l.destroy(op, object, request)
	if err != nil {
		return err
	}
	l.ctx.Leave(l.User, n.Async) // without the lock: an event may be waiting for it
	return nil
}

func (l *lifetime) destroy(op, object string, request func() (uverbs.Reported, error)) (uverbs.Reported, error) {
	l.control.Lock()
	defer l.control.Unlock()
	if err := l.open(op, object); err != nil {
		return uverbs.Reported{}, err
	}
	n, err := request()
	if err := l.ctx.Destroyed(err); err != nil {
		return n, err
	}
	l.closed.Store(true)
	return n, nil
}
