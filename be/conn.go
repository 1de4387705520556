package be

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/qp"
)

// lastWords bounds the write that tells a peer why its engine failed.
const lastWords = 10 * time.Millisecond

// conn is an engine with its liveness line: the connection of the bootstrap.
// It is the engine's handler, on the worker's goroutine.
type conn struct {
	// What each message needs, in one line of the cache.
	n     *Node
	w     *worker
	e     *core.Engine
	limit int           // bytes a message
	due   time.Duration // when tick looks at it; the worker's
	index int           // in the worker; -1: removed
	half  uint32        // of the backlog: when that many messages were taken, the peer is told
	num   qp.Num        // of the engine's queue pair; the worker's
	dirty bool          // the worker's
	gone  bool          // no completions are for it any more; the worker's
	dead  atomic.Bool

	place   int // in worker.due
	eager   int // bytes of a message that is sent whole, at most
	line    net.Conn
	peer    incarnation
	number  int                   // of the lane: our worker
	theirs  int                   // and the peer's
	addr    string                // of the peer, for errors
	dialed  string                // the address that we dialed; empty: the peer did
	born    time.Time             // when the engine came up
	cause   atomic.Pointer[error] // of the engine's failure; set before dead
	lostErr error                 // the worker's
	_       [40]byte              // to whole lines: the next one begins with a line of its own
}

func (c *conn) lane() lane { return lane{c.peer, c.number, c.theirs} }

// watch reads the liveness line until it ends, and tells the worker. A peer whose
// engine fails says why before it closes the line.
func (c *conn) watch() {
	defer c.n.wg.Done()
	var last ready
	err := readFrame(c.line, 0, &last)
	switch {
	case err == nil:
		err = fmt.Errorf("%w: its side of the engine failed: %s", ErrPeerLost, last.Error)
	case errors.Is(err, ErrProtocol):
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%w: its process ended the connection without a goodbye", ErrPeerLost)
	default:
		err = fmt.Errorf("%w: liveness connection: %w", ErrPeerLost, err)
	}
	c.w.submit(calling(func() {
		if c.index >= 0 {
			c.lostErr = c.peerError(err)
			c.w.lost = append(c.w.lost, c)
		}
	}))
}

func (c *conn) peerError(err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrPeerClosed) {
		return err
	}
	var p *PeerError
	if errors.As(err, &p) {
		return err
	}
	return &PeerError{Device: c.n.device, Peer: c.addr, Err: err}
}

// Opened ends a dial.
func (c *conn) Opened(cs *core.Socket, err error) {
	s := cs.User.(*Socket)
	if err != nil {
		s.end(c.peerError(err))
	}
	close(s.opened)
}

// Incoming takes a socket that the peer opens, if somebody listens.
func (c *conn) Incoming(cs *core.Socket, listener uint32, service string) (core.Refusal, bool) {
	l := c.n.listener(listener)
	if l == nil {
		return core.Refusal{Reason: wire.ReasonNoService, Text: "the listener is closed"}, false
	}
	s := newSocket(c, service)
	s.core = cs
	cs.User = s
	close(s.opened)
	if !l.offer(s) {
		c.n.untrack(s)
		return core.Refusal{Reason: wire.ReasonBusy, Text: fmt.Sprintf("%d sockets wait for Accept there: dial again later", acceptBacklog)}, false
	}
	return core.Refusal{}, true
}

// Message hands a message to the application.
func (c *conn) Message(cs *core.Socket, b []byte, reserved int) {
	cs.User.(*Socket).deliver(message{b, reserved})
}

// Closed ends a socket.
func (c *conn) Closed(cs *core.Socket, err error) {
	if s, ok := cs.User.(*Socket); ok {
		s.end(c.peerError(err))
	}
}

// Failed takes the engine out of the table of peers, so that the next dial makes
// a new one, and lets the peer know by the end of the liveness line.
func (c *conn) Failed(_ *core.Engine, cause error) {
	c.cause.Store(&cause)
	c.dead.Store(true)
	failed := !errors.Is(cause, ErrClosed) && !errors.Is(cause, ErrPeerClosed)
	if failed {
		c.n.noteFailure(c)
	}
	c.n.forget(c)
	// Not on the worker's time: a line may have more to end than a descriptor.
	c.n.wg.Go(func() {
		if failed {
			writeFrame(c.line, lastWords, ready{Incarnation: c.n.id, Peer: c.peer, Error: cause.Error()})
		}
		c.line.Close()
	})
}

// Drained makes room for another engine.
func (c *conn) Drained(*core.Engine) {
	c.gone = true
	c.w.forgetQP(c)
	c.w.freeEntries()
}

// Down ends the connection.
func (c *conn) Down(*core.Engine) {
	c.w.remove(c)
	c.n.wg.Done()
}
