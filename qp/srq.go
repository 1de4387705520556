package qp

import (
	"fmt"
	"syscall"
)

// SRQCaps are a shared receive queue's capacities: what was asked for at creation,
// and what the device gave (at least that).
type SRQCaps struct {
	RecvWR  int // receive requests outstanding
	RecvSGE int // segments a receive request
}

// CheckLimit reports whether a queue of these capacities can be armed with limit. The
// error wraps EINVAL.
func (c SRQCaps) CheckLimit(limit int) error {
	if limit < 0 || limit > c.RecvWR {
		return fmt.Errorf("%w: limit of %d receives, must be 0 to %d", syscall.EINVAL, limit, c.RecvWR)
	}
	return nil
}

// SRQAttr is what [SRQ.Query] tells.
type SRQAttr struct {
	Caps  SRQCaps
	Limit int // as last armed; 0: not armed, or its event came
}

// SRQ is a shared receive queue of any device: receives that serve whichever of its
// queue pairs gets the next message. Their completions come to that queue pair's
// receive CQ and name it.
//
// PostRecv belongs to one goroutine at a time. Arm, Query and Close may be called
// from any goroutine, Close not beside a post.
type SRQ interface {
	// Caps are the capacities that the device gave.
	Caps() SRQCaps
	// PostRecv posts receives in order and says how many were taken. When n <
	// len(wrs), the error tells why wrs[n] was refused; those before it are posted.
	// It does not allocate. The memory is the device's until the completion. A
	// message that a queue pair begins takes the oldest receive; when that queue
	// pair is reset or closed before the message is complete, its receive is gone
	// without a completion.
	PostRecv(wrs []RecvWR) (n int, err error)
	// Arm asks for one event verbs.EventSRQLimit when, as messages take receives,
	// fewer than limit are left; 0 takes that back. Devices look only when a receive
	// is taken: post before arming. The limit is 0 to Caps().RecvWR.
	Arm(limit int) error
	// Query asks the device for capacities and limit.
	Query() (SRQAttr, error)
	// Close destroys the queue. It fails while a queue pair uses it, and with
	// ErrClosed the second time. Receives not yet taken are forgotten.
	Close() error
}
