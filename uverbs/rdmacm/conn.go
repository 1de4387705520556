package rdmacm

import (
	"context"
	"sync/atomic"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Conn is a connection: a queue pair in RTS and the ID that watches over it. Wait
// belongs to one goroutine at a time; the other methods may be called from any.
type Conn struct {
	id      *ID
	q       qp.QP // nil until it is made
	route   Route
	private []byte
	ended   atomic.Bool // the peer disconnected
	closed  atomic.Bool
}

// QP is the queue pair. It belongs to the Conn: Close closes it.
func (c *Conn) QP() qp.QP { return c.q }

// Route tells the addresses and the device.
func (c *Conn) Route() Route { return c.route }

// Private is the private data of the peer: what it sent, or with Options.RawPrivate all
// the room of the message.
func (c *Conn) Private() []byte { return c.private }

// Wait waits for the end of the connection: nil when the peer disconnected. The error
// is ctx's, or wraps [verbs.ErrDeviceLost], [ErrAddrChanged], or [verbs.ErrClosed] when
// the Conn was closed here.
func (c *Conn) Wait(ctx context.Context) error {
	for !c.ended.Load() {
		e, err := c.id.Next(ctx)
		switch {
		case err != nil:
			return err
		case e.Type == Disconnected:
			c.ended.Store(true)
		case e.ends() != nil:
			return fail("wait", c.route.Remote.String(), e.ends())
		}
	}
	return nil
}

// Disconnect ends the connection: the queue pair goes to ERR, which flushes what is
// posted, and the peer is told. It must not run beside a post. Close is still due.
func (c *Conn) Disconnect() error {
	if c.closed.Load() {
		return fail(cmdDisconnect.op, c.route.Remote.String(), verbs.ErrClosed)
	}
	return c.disconnect()
}

func (c *Conn) disconnect() error {
	a := qp.Attr{State: qp.Err}
	if err := c.q.Modify(&a, qp.MaskState); err != nil {
		return errors.Wrap(err, "disconnect")
	}
	return c.id.Disconnect()
}

// Close disconnects, and closes the queue pair and the ID. All of it is tried; the
// error is the first one.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return fail("close", c.route.Remote.String(), verbs.ErrClosed)
	}
	return first(c.disconnect(), c.abandon())
}

// abandon gives back what the connection has so far.
func (c *Conn) abandon() error {
	var err error
	if c.q != nil {
		err = c.q.Close()
	}
	return first(err, c.id.Close(), c.id.c.release())
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
