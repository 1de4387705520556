package be

import (
	"context"
	"net"

	"github.com/byteexpress/byteexpress/verbs"
)

// Bootstrap makes the lines by which nodes bring their engines up. A line is a
// connection that carries bytes both ways, reliably and in order: a few hundred bytes
// at first, then none, until its end tells each side that the other is gone. What was
// written before a Close must reach the peer. Any goroutine may call its methods.
//
// A line whose net.Conn also has a method SGID() verbs.GID goes over an address of the
// node's own device: unless Config.GIDIndex chooses one, the engine takes that GID.
type Bootstrap interface {
	// Dial connects to a listener's address; it gives up when ctx ends.
	Dial(ctx context.Context, addr string) (net.Conn, error)
	// Listen takes connections at an address.
	Listen(addr string) (net.Listener, error)
}

// TCP is the bootstrap over TCP connections.
type TCP struct{}

// Dial is a [Bootstrap]'s; addr is "host:port".
func (TCP) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// Listen is a [Bootstrap]'s; addr is "host:port", port 0 takes a free one.
func (TCP) Listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

// gidOf is the GID that a line goes by, zero if it does not tell.
func gidOf(line net.Conn) verbs.GID {
	if l, ok := line.(interface{ SGID() verbs.GID }); ok {
		return l.SGID()
	}
	return verbs.GID{}
}
