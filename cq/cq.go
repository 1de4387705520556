package cq

import (
	"context"
	"errors"
)

var (
	// ErrOverflow is returned by Poll once the device dropped a completion for
	// lack of room. The queue cannot be used any more; its queue pairs are dead.
	ErrOverflow = errors.New("completion queue overflow: make it at least as deep as all signaled sends and receives that may be outstanding")
	// ErrClosed is returned by the methods of a closed queue.
	ErrClosed = errors.New("completion queue is closed")
)

// CQ is a completion queue of any device.
//
// Poll, Arm, Capacity and Resize belong to one goroutine at a time (the queue's
// owner). Wait may run in the owner only. Wake and Close may be called from any goroutine.
type CQ interface {
	// Capacity is how many completions the queue can hold, at least as many as
	// were asked for.
	Capacity() int
	// Resize makes the queue able to hold at least entries completions, more or
	// fewer than before; those that wait in it are kept, and it goes on if this
	// fails. It fails when more than entries wait (EINVAL), and with an error that
	// wraps verbs.ErrUnsupported on a device that cannot resize. It belongs to the
	// owner; queue pairs may be at work meanwhile.
	Resize(entries int) error
	// Poll moves up to len(dst) completions into dst, oldest first, and says how
	// many. It never blocks and does not allocate. 0 and nil: nothing there.
	Poll(dst []Completion) (int, error)
	// Arm asks for one event when the next completion is added (with
	// solicitedOnly: the next solicited or failed one). Completions that were
	// already there give no event: poll once after arming, before Wait.
	Arm(solicitedOnly bool) error
	// Wait blocks until the event of the last Arm, a Wake, or the end of ctx,
	// whichever is first. nil: an event or a Wake (which may also be left over
	// from earlier: poll, whatever the reason). Otherwise ctx's error, ErrClosed,
	// or the loss of the device. No thread is held while it waits.
	Wait(ctx context.Context) error
	// Wake makes the Wait that runs now, or else the next one, return nil. It
	// does not allocate and never blocks.
	Wake()
	// Close destroys the queue. It fails while a queue pair uses it, and with
	// ErrClosed the second time.
	Close() error
}
