package archon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

// maxPings bounds the pings outstanding on a connection. They have room of their own,
// so that a connection with all its calls outstanding can still be asked after.
const maxPings = 8

// Ping asks whether the server at the other end is alive. The server answers on the
// goroutine that moves its socket's bytes, before any queue. The caller owns it, and
// may use it again once done was called.
type Ping struct {
	Timeout time.Duration // how long to wait; 0: for ever

	// Incarnation is the number of the server, which another process at the same
	// address does not have; see ServerConfig.
	Incarnation uint64
	Err         error // an *Error

	call Call
	done func(*Ping)
	left atomic.Bool
}

// Left tells whether the ping is on its way: before, it waits behind what was sent
// earlier. Any goroutine may ask.
func (p *Ping) Left() bool { return p.left.Load() }

// GoPing sends a ping; done(p) runs once when it is answered or over, as that of
// Client.Go. A connection takes 8 pings at once. When GoPing gives an error,
// done does not run.
func (c *Client) GoPing(p *Ping, done func(*Ping)) error {
	p.call.ping, p.call.Timeout, p.done = p, p.Timeout, done
	p.Err, p.Incarnation = nil, 0
	p.left.Store(false)
	raw, err := c.sock.Alloc(HeaderSize)
	if err != nil {
		return &Error{Code: ResourceExhausted, Message: "transport buffer", Cause: err, Retryable: true}
	}
	if err = c.begin(&p.call, Buf{raw: raw}, pingOver); err != nil {
		c.sock.Free(raw)
	}
	return err
}

func pingOver(call *Call) {
	p := call.ping
	p.Err, call.Err = call.Err, nil
	p.done(p)
}

// Ping sends a ping and waits for the answer. It gives the server's incarnation.
func (c *Client) Ping(ctx context.Context) (incarnation uint64, err error) {
	left, err := timeLeft(ctx)
	if err != nil {
		return 0, err
	}
	p, over := &Ping{Timeout: left}, make(chan struct{})
	if err := c.GoPing(p, func(*Ping) { close(over) }); err != nil {
		return 0, err
	}
	select {
	case <-over:
	case <-ctx.Done():
		c.Cancel(&p.call, contextError(ctx.Err()))
		<-over
	}
	return p.Incarnation, p.Err
}

// pingLeft notes that a ping is on its way.
func (c *Client) pingLeft(id CallID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.pings.find(id); call != nil {
		call.ping.left.Store(true)
	}
}

// pong ends a ping.
func (c *Client) pong(h *header, b []byte) error {
	c.mu.Lock()
	used := c.pings.used(h.id)
	call := c.pings.take(h.id)
	c.mu.Unlock()
	if !used {
		return errors.Wrap(ErrProtocol, "pong to no ping")
	}
	c.sock.Free(b)
	if call != nil {
		call.ping.Incarnation = h.method
		call.finish(Response{}, nil)
	}
	return nil
}
