package netconn

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// Conn is a stream of bytes over a socket, a net.Conn. Its methods may be called
// from any goroutine; concurrent Reads, and concurrent Writes, go one after another.
type Conn struct {
	sock   *be.Socket
	node   *be.Node
	rd, wr deadline
	closed atomic.Bool

	rmu  sync.Mutex // guards what follows
	buf  []byte     // the message that is being read
	rest []byte     // what of it was not read yet
	eof  bool

	wmu    sync.Mutex            // one Write at a time
	fin    atomic.Bool           // the empty message was sent
	queued atomic.Int64          // cost of what the device does not have yet
	wake   chan struct{}         // one token: queued fell, or werr is set
	werr   atomic.Pointer[error] // why a message could not be sent
}

var (
	_ net.Conn      = (*Conn)(nil)
	_ io.WriterTo   = (*Conn)(nil)
	_ io.ReaderFrom = (*Conn)(nil)
)

// New makes a Conn of a socket, which is the Conn's from now on: nobody else may
// send, receive or close on it.
func New(s *be.Socket) *Conn {
	c := &Conn{sock: s, node: s.Node(), wake: make(chan struct{}, 1)}
	c.rd.now, c.wr.now = newExpiry(), newExpiry()
	s.Stream()
	return c
}

// Socket is the socket below, for its Service and Err.
func (c *Conn) Socket() *be.Socket { return c.sock }

// Addr is the bootstrap address of one side. All sockets between two nodes share it.
type Addr string

// Network is "be".
func (Addr) Network() string { return "be" }

// String is the address as the bootstrap prints it: "127.0.0.1:4791".
func (a Addr) String() string { return string(a) }

// LocalAddr is this side's bootstrap address, an [Addr].
func (c *Conn) LocalAddr() net.Addr { return Addr(c.sock.LocalAddr().String()) }

// RemoteAddr is the peer's bootstrap address, an [Addr].
func (c *Conn) RemoteAddr() net.Addr { return Addr(c.sock.RemoteAddr().String()) }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline has Reads that are not done by t fail with os.ErrDeadlineExceeded,
// those that wait already too. The zero time is no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.opError("set", c.rd.set(t)) }

// SetWriteDeadline is the same for Writes. A Write that fails so has queued the n
// bytes that it returns.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.opError("set", c.wr.set(t)) }

// Close ends the connection and wakes what is blocked on it, with net.ErrClosed.
// What was written is still sent for at most be.Config.Linger; a peer that could
// not take it by then reads io.ErrUnexpectedEOF. What was received and not read is
// dropped.
func (c *Conn) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return c.opError("close", net.ErrClosed)
	}
	c.end()
	c.rd.close()
	c.wr.close()
	err := c.sock.Close()
	c.reap()
	return c.opError("close", err)
}

// CloseWrite ends the direction to the peer: it reads io.EOF after what was written
// before. Reading goes on. A later Write fails with syscall.EPIPE.
func (c *Conn) CloseWrite() error {
	if c.closed.Load() {
		return c.opError("close", net.ErrClosed)
	}
	return c.opError("close", c.end())
}

// end sends the empty message, once.
func (c *Conn) end() error {
	if !c.fin.CompareAndSwap(false, true) {
		return nil
	}
	return cause(c.sock.Post(nil, func(error) {}), syscall.EPIPE)
}

// opError is err as package net would say it: nil and io.EOF as they are.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "be", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// cause gives a socket's error the name that programs for TCP look for; gone is what
// they expect when the peer has closed.
func cause(err, gone error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, be.ErrClosed):
		return net.ErrClosed
	case errors.Is(err, be.ErrPeerClosed):
		return gone
	case errors.Is(err, be.ErrMissing):
		return io.ErrUnexpectedEOF
	}
	return err
}
