package be

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/byteexpress/byteexpress/be/core"
)

// Errors to match with errors.Is. A socket that ended by a fault also matches
// the cause: a cq.Status, verbs.ErrDeviceLost, a syscall.Errno of the
// bootstrap connection.
var (
	// ErrClosed says that this side closed the socket, the listener or the node.
	ErrClosed = core.ErrClosed
	// ErrPeerClosed says that the peer closed the socket, or left in good order.
	ErrPeerClosed = core.ErrPeerClosed
	// ErrPeerLost says that the peer's process or host is gone without a goodbye.
	ErrPeerLost = errors.New("peer lost")
	// ErrPeerTimeout says that a peer did not answer for too long.
	ErrPeerTimeout = core.ErrPeerTimeout
	// ErrProtocol says that a peer sent something that the protocol does not allow.
	ErrProtocol = core.ErrProtocol
	// ErrTooLarge says that a message is longer than both sides take.
	ErrTooLarge = core.ErrTooLarge
	// ErrRefused says that the peer did not take the connection or the socket.
	ErrRefused = core.ErrRefused
	// ErrBusy is the ErrRefused of a listener with too many sockets that wait for Accept.
	// There may be room when it has taken some: dial again after a pause.
	ErrBusy = core.ErrBusy
	// ErrRejected says that the peer did not take a message.
	ErrRejected = core.ErrRejected
	// ErrDropped says that a peer is lost, or has left, and messages of it that had arrived
	// before could not be delivered: there was no registered memory for them, for
	// Config.Linger after that.
	ErrDropped = core.ErrDropped
	// ErrMissing says that a message of the peer was given up, and that the rest would come
	// without it: see Socket.Stream.
	ErrMissing = core.ErrMissing
	// ErrUnsupported says that the peer does not know what was asked for.
	ErrUnsupported = core.ErrUnsupported
	// ErrVersion says that the peer speaks no version of the protocol that we do.
	ErrVersion = errors.New("no common protocol version")
	// ErrIncarnation says that something names another incarnation of a node than
	// the one that is meant: it is left over from before a restart.
	ErrIncarnation = errors.New("wrong incarnation")
	// ErrGIDType says that packets of the two sides' GIDs do not reach each other: the
	// sides have no version of RoCE in common.
	ErrGIDType = errors.New("GID types differ, packets would not arrive")
	// ErrNotRegistered says that a buffer is not from the node's Alloc, or was freed.
	ErrNotRegistered = errors.New("buffer is not from this node's Alloc, or was freed")
	// ErrEngines says that the node's completion queue has no room for one more
	// engine.
	ErrEngines = errors.New("too many engines")
)

// errExists is the refusal of a connection to a node that there is an engine to,
// or that the other direction's dial will make one to.
var errExists = errors.New("an engine to that node exists or comes up")

// errNoContext is the error of a call that would have to wait, and has a nil context.
var errNoContext = errors.New("be: nil context: give context.Background()")

// ConfigError is a field of a Config that a node cannot work with.
type ConfigError struct {
	Field string
	Value int64
	Must  string // what it must be: "0 to 31"
}

// Error names the field, its value and what it must be.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("be: config: %s is %d, must be %s", e.Field, e.Value, e.Must)
}

// PeerError is the end of everything shared with one remote node, and why.
type PeerError struct {
	Device string
	Peer   string // its bootstrap address
	Err    error
}

// Error names device, peer and cause.
func (e *PeerError) Error() string {
	return fmt.Sprintf("%s: engine to %s: %v", e.Device, e.Peer, e.Err)
}

// Unwrap gives the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// Steps by their names in StepError, for who decides by them. The bootstrap has more.
const (
	StepPort     = "choose port and GID"
	StepLimits   = "ask for the device's limits"
	StepDomain   = "allocate the protection domain"
	StepMemory   = "set up registered memory"
	StepCQ       = "create a completion queue"
	StepSRQ      = "create a shared receive queue"
	StepArm      = "arm the completion queue"
	StepConnect  = "connect"
	StepQP       = "prepare the queue pair"
	StepInit     = "bring the queue pair to INIT"
	StepReceives = "post the receives"
	StepRTR      = "bring the queue pair to RTR"
	StepRTS      = "bring the queue pair to RTS"
	StepOpen     = "open a socket" // the first messages over the queue pair
)

// StepError is a step of NewNode or of the bootstrap that did not succeed, or the arming
// of a completion queue later.
type StepError struct {
	Step string // "read the peer's hello"
	Peer string // empty: the step is about this side's device alone
	Err  error
}

// Error names peer, step and cause.
func (e *StepError) Error() string {
	switch {
	case e.Peer == "":
		return e.withoutPeer()
	case e.Step == StepConnect:
		return fmt.Sprintf("connect to %s: %v", e.Peer, e.cause())
	}
	return fmt.Sprintf("connect to %s: %s", e.Peer, e.withoutPeer())
}

func (e *StepError) withoutPeer() string { return fmt.Sprintf("%s: %v", e.Step, e.cause()) }

// cause is the error without what is said already: the peer's address, and that it was to
// be connected to.
func (e *StepError) cause() error {
	switch err := e.Err.(type) {
	case *PeerError:
		if err.Peer == e.Peer {
			return fmt.Errorf("%s: %w", err.Device, err.Err)
		}
	case *net.OpError:
		if sys, ok := err.Err.(*os.SyscallError); ok && err.Op == "dial" {
			return sys.Err
		} else if err.Op == "dial" {
			return err.Err
		}
	}
	return e.Err
}

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// tooLarge is the error for a message of n bytes on a connection with this limit.
func tooLarge(n, limit int) error {
	return fmt.Errorf("%w: %d bytes, the limit of this connection is %d (the smaller Config.MaxMessage of both sides, at most 2^31-1)", ErrTooLarge, n, limit)
}
