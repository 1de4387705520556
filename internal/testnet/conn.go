package testnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is one end of a connection. Its fields are under net.mu.
type conn struct {
	net  *Net
	host string
	addr address
	peer *conn

	in       pipe
	closed   bool
	deadline time.Time
}

// pipe is what is on its way to one end.
type pipe struct {
	wake  chan struct{} // something changed for the reader
	queue []packet
	last  time.Time // when the last of them comes
	end   error     // what the reader gets at the end; nil: io.EOF
}

// packet is what was sent at one moment. Packets come at different moments, so that what
// they do at the receiver has an order.
type packet struct {
	sent, at time.Time
	b        []byte
}

func newConn(n *Net, host string, addr address) *conn {
	return &conn{net: n, host: host, addr: addr, in: pipe{wake: make(chan struct{}, 1)}}
}

func (c *conn) between(a, b string) bool {
	return c.host == a && c.peer.host == b || c.host == b && c.peer.host == a
}

func (p *pipe) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// resend has what waits come at a time at the earliest.
func (p *pipe) resend(at time.Time) {
	for i := range p.queue {
		if p.queue[i].at.Before(at) {
			p.queue[i].at = at
		}
	}
	if p.last.Before(at) {
		p.last = at
	}
}

// end closes this end; the peer reads io.EOF, or err. The caller holds mu.
func (c *conn) end(err error) {
	if c.closed {
		return
	}
	c.closed = true
	delete(c.net.conns, c)
	c.in.notify()
	c.send(nil)
	c.peer.in.end = err
}

// send puts a packet on its way; none says that nothing follows.
func (c *conn) send(b []byte) {
	p, now := &c.peer.in, time.Now()
	if last := len(p.queue) - 1; last >= 0 && b != nil && p.queue[last].sent.Equal(now) {
		p.queue[last].b = append(p.queue[last].b, b...)
		return
	}
	at := now.Add(c.net.latency(c.host, c.peer.host))
	if !at.After(p.last) {
		at = p.last.Add(1)
	}
	p.last = at
	p.queue = append(p.queue, packet{now, at, b})
	p.notify()
}

func (c *conn) Read(b []byte) (int, error) {
	n, p := c.net, &c.in
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		_, lost := n.lost[[2]string{c.peer.host, c.host}]
		now, next := time.Now(), c.deadline
		var changed chan struct{}
		switch {
		case c.closed:
			return 0, c.failed("read", net.ErrClosed)
		case !c.deadline.IsZero() && !now.Before(c.deadline):
			return 0, c.failed("read", os.ErrDeadlineExceeded)
		case n.frozen[c.host] || lost:
			changed = n.changed
		case len(p.queue) == 0:
		case now.Before(p.queue[0].at):
			if at := p.queue[0].at; next.IsZero() || at.Before(next) {
				next = at
			}
		case p.queue[0].b == nil: // it stays
			if p.end != nil {
				return 0, c.failed("read", p.end)
			}
			return 0, io.EOF
		default:
			k := copy(b, p.queue[0].b)
			if p.queue[0].b = p.queue[0].b[k:]; len(p.queue[0].b) == 0 {
				p.queue = p.queue[1:]
			}
			return k, nil
		}
		n.wait(p.wake, changed, next)
	}
}

func (c *conn) Write(b []byte) (int, error) {
	n := c.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.frozen[c.host] && !c.closed {
		n.wait(n.changed, nil, time.Time{})
	}
	switch p := &c.in; {
	case c.closed:
		return 0, c.failed("write", net.ErrClosed)
	case p.end != nil && !time.Now().Before(p.last):
		return 0, c.failed("write", syscall.EPIPE)
	}
	if len(b) > 0 {
		c.send(append([]byte(nil), b...))
	}
	return len(b), nil
}

func (c *conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "test", Source: c.addr, Addr: c.peer.addr, Err: err}
}

func (c *conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.end(nil)
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.addr }
func (c *conn) RemoteAddr() net.Addr { return c.peer.addr }

// SetReadDeadline bounds Reads, also one under way.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.deadline = t
	c.in.notify()
	return nil
}

// SetWriteDeadline does nothing: a Write does not wait for the peer.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is SetReadDeadline.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }
