package testnet

import (
	"net"
	"time"
)

// listener is a net.Listener of a host.
type listener struct {
	net    *Net
	host   string
	addr   address
	queue  []*conn // under net.mu, as closed
	closed bool
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) Accept() (net.Conn, error) {
	n := l.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, &net.OpError{Op: "accept", Net: "test", Addr: l.addr, Err: net.ErrClosed}
		case len(l.queue) > 0 && !n.frozen[l.host]:
			c := l.queue[0]
			l.queue = l.queue[1:]
			return c, nil
		}
		n.wait(n.changed, nil, time.Time{})
	}
}

func (l *listener) Close() error {
	n := l.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	delete(n.listeners, string(l.addr))
	for _, c := range l.queue {
		c.end(nil)
	}
	n.change()
	return nil
}
