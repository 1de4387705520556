//go:build linux

package uverbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/verbs"
)

// eventFile is a completion or async event descriptor: non-blocking, in the
// runtime's poller, so that a waiting goroutine holds no thread. The kernel gives
// one event a read.
type eventFile struct {
	f      *os.File
	device string
	woken  atomic.Bool
}

// past is a deadline that ends a read at once.
var past = time.Unix(1, 0)

func newEventFile(fd int, device, name string) (*eventFile, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), name)
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		f.Close()
		return nil, fmt.Errorf("descriptor cannot be polled: %w", err)
	}
	return &eventFile{f: f, device: device}, nil
}

// next reads one event into b, which must have the event's size. woken tells that
// it was ended by wake instead. One goroutine at a time may call it.
func (e *eventFile) next(ctx context.Context, b []byte) (woken bool, err error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { e.f.SetReadDeadline(past) })
		defer stop()
	}
	for {
		// Whoever ends this wait first says why (woken, ctx), then moves the
		// deadline. So clearing the deadline before looking for the reason loses
		// none: a later mover ends the read, an earlier one's reason is seen.
		if err := e.f.SetReadDeadline(time.Time{}); err != nil {
			return false, verbs.ErrClosed // it could be polled when it was new
		}
		if e.woken.Swap(false) {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := e.f.Read(b)
		switch {
		case err == nil && n == len(b):
			return false, nil
		case err == nil:
			return false, &verbs.OpError{Op: "read event", Device: e.device, Err: fmt.Errorf("%d bytes, want %d", n, len(b))}
		case errors.Is(err, os.ErrDeadlineExceeded):
		default:
			return false, e.closed(err)
		}
	}
}

func (e *eventFile) closed(err error) error {
	switch {
	case errors.Is(err, os.ErrClosed):
		return verbs.ErrClosed
	case errors.Is(err, unix.EIO):
		err = fmt.Errorf("%w (%w)", verbs.ErrDeviceLost, unix.EIO)
	}
	return &verbs.OpError{Op: "read event", Device: e.device, Err: err}
}

// wake ends the running next, or else the one after.
func (e *eventFile) wake() {
	e.woken.Store(true)
	e.f.SetReadDeadline(past)
}

func (e *eventFile) close() error {
	if err := e.f.Close(); err != nil {
		return e.closed(err)
	}
	return nil
}

// CompChannel delivers completion events: one for each armed completion queue
// that is attached to it and got a completion. Wait belongs to one goroutine at a
// time; Wake and Close may be called from any.
type CompChannel struct {
	e   *eventFile
	fd  int
	buf [compEventSize]byte
}

// CreateCompChannel makes a completion channel.
func (c *Context) CreateCompChannel() (*CompChannel, error) {
	r, err := c.begin(mCreateCompChannel, createCompChannelRespSize)
	if err != nil {
		return nil, err
	}
	defer r.release()
	r.in(attrCoreIn, createCompChannelSize)
	out := r.out(attrCoreOut, createCompChannelRespSize)
	if errno := r.do(); errno != 0 {
		return nil, c.fail(r.m, "", errno)
	}
	fd := int(int32(createCompChannelRespFD.Get(out)))
	e, err := newEventFile(fd, c.dev.Name, c.dev.Name+" completions")
	if err != nil {
		return nil, c.fail(r.m, "", err)
	}
	return &CompChannel{e: e, fd: fd}, nil
}

// Wait blocks until the next event and returns the user handle of its completion
// queue; woken tells that Wake ended it instead. The error is ctx's, or wraps
// [verbs.ErrClosed] or [verbs.ErrDeviceLost].
func (ch *CompChannel) Wait(ctx context.Context) (userHandle uint64, woken bool, err error) {
	woken, err = ch.e.next(ctx, ch.buf[:])
	if err != nil || woken {
		return 0, woken, err
	}
	return compEventCQHandle.Get(ch.buf[:]), false, nil
}

// Wake ends the Wait that runs, or else the next one.
func (ch *CompChannel) Wake() { ch.e.wake() }

// Close closes the channel; a running Wait returns [verbs.ErrClosed]. Completion
// queues attached to it live on, without events.
func (ch *CompChannel) Close() error { return ch.e.close() }

// AsyncEvent is one record of the async event file.
type AsyncEvent struct {
	Element uint64 // user handle of the queue pair or completion queue, or the port
	Type    verbs.EventType
}

// NextAsync blocks for the next asynchronous event. One goroutine at a time may
// call it. Errors are as of [CompChannel.Wait].
func (c *Context) NextAsync(ctx context.Context) (AsyncEvent, error) {
	for {
		woken, err := c.async.next(ctx, c.asyncBuf[:])
		if err != nil {
			return AsyncEvent{}, err
		}
		if !woken {
			break
		}
	}
	b := c.asyncBuf[:]
	return AsyncEvent{Element: asyncEventElement.Get(b), Type: verbs.EventType(asyncEventEventType.Get(b))}, nil
}
