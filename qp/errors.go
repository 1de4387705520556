package qp

import "errors"

// Errors of posting and modifying. Only ErrQueueFull is worth a retry with the
// same request: after the next completion of that queue.
var (
	ErrQueueFull      = errors.New("queue is full: wait for a completion of this queue, then post again")
	ErrTooManySGEs    = errors.New("more segments than the queue pair was created for")
	ErrInlineTooLong  = errors.New("inline payload is longer than the queue pair was created for")
	ErrInlineUse      = errors.New("inline payload is for SEND and WRITE, without segments")
	ErrMessageTooLong = errors.New("message is longer than 2^31 bytes or than the port allows")
	ErrOpcode         = errors.New("no such operation on this queue pair")
	ErrBind           = errors.New("LOCAL_INV and BIND_MW have no payload; BIND_MW needs SendWR.Bind with a range, remote access only, and the old key with another low byte; LOCAL_INV needs a window that is bound")
	ErrAtomic         = errors.New("an atomic needs one 8-byte result and an 8-byte aligned remote address")
	ErrState          = errors.New("not possible in this state of the queue pair: receives need INIT or later, sends need RTS")
	ErrTransition     = errors.New("illegal queue pair transition")
	ErrSharedRecv     = errors.New("the queue pair takes its receives from a shared receive queue: post them there")
	ErrClosed         = errors.New("queue is closed")
)
