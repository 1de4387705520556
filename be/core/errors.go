package core

import (
	"errors"
	"fmt"

	"github.com/byteexpress/byteexpress/be/internal/wire"
)

var (
	// ErrProtocol is wrapped by errors about what a peer sent.
	ErrProtocol = wire.ErrProtocol
	// ErrPeerClosed says that the peer closed the socket, or left in good order.
	ErrPeerClosed = errors.New("closed by the peer")
	// ErrClosed says that this side closed the socket or the node.
	ErrClosed = errors.New("closed on this side")
	// ErrRefused is wrapped when the peer did not take a socket.
	ErrRefused = errors.New("refused by the peer")
	// ErrBusy is the ErrRefused of a peer that may take the socket later.
	ErrBusy = fmt.Errorf("%w: %v", ErrRefused, wire.ReasonBusy)
	// ErrRejected is wrapped when the peer did not take a message.
	ErrRejected = errors.New("message rejected by the peer")
	// ErrPeerTimeout says that a peer did not answer for too long.
	ErrPeerTimeout = errors.New("the peer does not answer")
	// ErrDropped says that messages that had arrived could not be delivered.
	ErrDropped = errors.New("messages that had arrived were dropped, there was no registered memory for them: free buffers sooner, or raise PoolBytes")
	// ErrMissing ends a stream of which a message was given up.
	ErrMissing = errors.New("a message before this was given up, by the peer or for lack of memory")
	// ErrComing is a Memory's error for what it will have soon, of itself.
	ErrComing = errors.New("memory is being made ready")
	// ErrCanceled ends a message whose caller gave it up.
	ErrCanceled = errors.New("message canceled")
	// ErrUnsupported says that the peer does not know what was asked for.
	ErrUnsupported = errors.New("the peer does not support it: update it")
	// ErrSockets says that an engine has no free socket number.
	ErrSockets = errors.New("too many sockets on one engine: close some, or raise MaxSockets on both sides")
)

// Refusal says why a socket is not taken.
type Refusal struct {
	Reason wire.Reason
	Text   string
}

// protocolError makes an error about a field of a peer's message.
func protocolError(t wire.Type, field string, value uint64, want string) error {
	return &wire.FieldError{Type: t, Field: field, Value: value, Want: want}
}

// reasonError makes an error of a peer's reason.
func reasonError(sentinel error, r wire.Reason, text string) error {
	if text == "" {
		return fmt.Errorf("%w: %v", sentinel, r)
	}
	return fmt.Errorf("%w: %v: %s", sentinel, r, text)
}
