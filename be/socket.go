package be

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/mr"
)

// Socket is one logical connection to a peer. Messages arrive whole, once, and in
// the order of sending (see SocketOptions for one without that order). Its methods may
// be called from any goroutine.
type Socket struct {
	// These 64 bytes are all that a small message touches, and lie close to those of
	// other sockets: with many of them, caches and page tables hold no more.
	conn    *conn
	core    *core.Socket        // set once, before opened is closed
	mux     atomic.Pointer[Mux] // that takes the messages, or nil
	box     inbox
	ended   atomic.Bool
	turn    atomic.Uint32 // of the mux: turnNone, ...
	popped  atomic.Uint32 // messages taken by Recv that the worker was not told of
	direct  bool          // the worker's: fn takes the messages
	touched bool          // the worker's: see lookAhead
	*socketRest
}

// socketRest is what few messages need of a socket.
type socketRest struct {
	waiters atomic.Int32
	taker   atomic.Uint32       // of the messages: takenByRecv, ...
	fn      func([]byte, error) // the worker's
	tags    atomic.Uint64
	notify  chan struct{} // one token: there may be a message
	opened  chan struct{} // the dial ended, or nothing to wait for
	closed  chan struct{} // err is set
	err     error
	service string
}

func newSocket(c *conn, service string) *Socket {
	s := &Socket{conn: c, socketRest: &socketRest{service: service, opened: make(chan struct{}), closed: make(chan struct{}), notify: make(chan struct{}, 1)}}
	s.turn.Store(turnTaken)
	c.n.track(s)
	return s
}

// Service is the name that the dialing side gave.
func (s *Socket) Service() string { return s.service }

// Peer is the bootstrap address of the other node.
func (s *Socket) Peer() string { return s.conn.addr }

// Node is the node that the socket is on.
func (s *Socket) Node() *Node { return s.conn.n }

// LocalAddr is this side's end of the bootstrap connection, which all sockets to the
// peer share.
func (s *Socket) LocalAddr() net.Addr { return s.conn.line.LocalAddr() }

// RemoteAddr is the peer's end of the bootstrap connection.
func (s *Socket) RemoteAddr() net.Addr { return s.conn.line.RemoteAddr() }

// Unordered reports whether the dialing side asked for a socket without order.
func (s *Socket) Unordered() bool { return s.core.Unordered() }

// Stream has the socket end with ErrMissing where a message of the peer is given up: by a
// Close of its that ran out of Linger, a canceled Send, or our HoldTimeout. Without it, those
// behind it that were sent well still come. It is for sockets with order, before the first
// message is taken.
func (s *Socket) Stream() {
	s.conn.w.submit(calling(func() {
		if s.core.Engine().Stream(s.core); errors.Is(s.err, ErrMissing) {
			s.drain() // it is not known what is behind it
		}
	}))
}

// MaxMessage is the longest message that this socket carries, in bytes.
func (s *Socket) MaxMessage() int { return s.conn.limit }

// Err is why the socket ended, nil while it is open.
func (s *Socket) Err() error {
	if s.ended.Load() {
		return s.err
	}
	return nil
}

// Done is closed when the socket ended; Err tells why.
func (s *Socket) Done() <-chan struct{} { return s.closed }

// end sets the error; only the first counts. It belongs to the worker, or to
// Close of a node whose worker ended.
func (s *Socket) end(err error) {
	if s.ended.Load() {
		return
	}
	s.err = err
	s.ended.Store(true)
	close(s.closed)
	if mux := s.mux.Load(); mux != nil {
		mux.wake(s)
	}
	if fn := s.fn; fn != nil {
		s.fn, s.direct = nil, false
		fn(nil, err)
	}
}

// check gives the key of a buffer that may be sent.
func (s *Socket) check(b []byte) (mr.LKey, error) {
	if len(b) > s.conn.limit {
		return 0, tooLarge(len(b), s.conn.limit)
	}
	if s.ended.Load() {
		return 0, s.err
	}
	if len(b) == 0 {
		return 0, nil
	}
	key, err := s.conn.n.mem.LKey(b)
	if err != nil {
		return 0, ErrNotRegistered
	}
	return key, nil
}

// Send sends b, which is from the node's Alloc, as one message, and returns when
// the peer's device has all of it. With nil, b is the caller's again. With an
// error, b is gone: the node takes it back when the device no longer uses it
// (except ErrNotRegistered, for memory that was never the node's, and OwnerError).
//
// When ctx ends first, its error is returned at once. The message is then given
// up if that is still possible, else delivered.
func (s *Socket) Send(ctx context.Context, b []byte) error {
	return s.wait(ctx, &command{kind: cmdSend, buf: b})
}

// wait has the worker run a command with a buffer, and waits for its end.
func (s *Socket) wait(ctx context.Context, c *command) error {
	b := c.buf
	lkey, err := s.check(b)
	if err == nil {
		if ctx == nil {
			err = errNoContext
		} else {
			err = ctx.Err()
		}
	}
	if err != nil {
		if err != ErrNotRegistered {
			s.conn.n.Free(b)
		}
		return err
	}
	w := newWaiter()
	if c.done, err = s.conn.n.mem.owners.give(c.kind.what(), b, c.kind != cmdFetch, w.done); err != nil {
		waiters.Put(w)
		return err
	}
	w.state.Store(waiting)
	w.buf, w.mem = b, s.conn.n.mem
	tag := uint64(0)
	if ctx.Done() != nil {
		tag = s.tags.Add(1)
	}
	c.conn, c.sock, c.lkey, c.tag = s.conn, s.core, lkey, tag
	if !s.conn.w.submit(c) {
		s.conn.n.mem.Free(b)
		waiters.Put(w)
		return ErrClosed
	}
	select {
	case err = <-w.ch:
	case <-ctx.Done():
		if w.state.CompareAndSwap(waiting, given) {
			s.conn.w.submit(&command{kind: cmdCancel, conn: s.conn, sock: s.core, tag: tag})
			return ctx.Err() // the waiter goes back when done is called
		}
		err = <-w.ch
	}
	w.buf = nil
	waiters.Put(w)
	return s.wrap(err)
}

func (s *Socket) wrap(err error) error {
	if err == nil {
		return nil
	}
	return s.conn.peerError(err)
}

const (
	waiting int32 = iota
	told          // done was called
	given         // the caller is gone
)

// waiter is a Send that waits for its message to end.
type waiter struct {
	state atomic.Int32
	ch    chan error
	done  func(error)
	buf   []byte
	mem   *memory
}

var waiters sync.Pool

func newWaiter() *waiter {
	if w, ok := waiters.Get().(*waiter); ok {
		return w
	}
	w := &waiter{ch: make(chan error, 1)}
	w.done = w.finish
	return w
}

func (w *waiter) finish(err error) {
	if w.state.CompareAndSwap(waiting, told) {
		w.ch <- err
		return
	}
	if err == nil {
		w.mem.Free(w.buf) // sent after all, but the caller was told an error
	}
	w.buf = nil
	waiters.Put(w)
}

// tell calls the done of a post, if there is one.
func tell(done func(error), err error) {
	if done != nil {
		done(err)
	}
}

// Post sends b without waiting. done runs once, on the worker's goroutine: it
// must not block, and may be nil, if nobody has to know. Until then b is the node's;
// after done(nil) it is the caller's, after an error the node has taken it back. An
// error of Post itself means that nothing was done: b stays the caller's, and done is
// not called.
//
// Post may be called from done and from the function given to OnMessage.
func (s *Socket) Post(b []byte, done func(error)) error { return s.post(b, 0, done) }

func (s *Socket) post(b []byte, tag uint64, done func(error)) error {
	lkey, err := s.check(b)
	if err != nil {
		return err
	}
	if done, err = s.conn.n.mem.owners.give("Post", b, true, done); err != nil {
		return err
	}
	if !s.conn.w.submit(&command{kind: cmdSend, conn: s.conn, sock: s.core, buf: b, lkey: lkey, tag: tag, done: done}) {
		return s.kept(b)
	}
	return nil
}

// kept is the error of a call whose worker has ended: the buffer stays the caller's.
func (s *Socket) kept(b []byte) error {
	s.conn.n.mem.owners.back(b)
	return ErrClosed
}

// Close ends the socket. What was queued before is still sent, for at most the
// node's Linger; received messages that were not taken are dropped.
func (s *Socket) Close() error {
	s.conn.n.untrackClosed(s)
	if !s.conn.w.submit(calling(s.close)) {
		s.drain()
	}
	return nil
}

// close is Close on the worker.
func (s *Socket) close() {
	if s.core != nil {
		s.core.Engine().CloseSocket(s.conn.w.now, s.core)
		s.conn.w.touch(s.conn)
	}
	s.drain()
}
