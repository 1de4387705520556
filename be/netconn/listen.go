package netconn

import (
	"context"
	"net"

	"github.com/byteexpress/byteexpress/be"
)

// Listener is a net.Listener over a listener of ByteExpress.
type Listener struct{ l *be.Listener }

var _ net.Listener = (*Listener)(nil)

// Listen takes connections at a bootstrap address, as "127.0.0.1:0".
func Listen(n *be.Node, addr string) (*Listener, error) {
	l, err := n.Listen(addr)
	if err != nil {
		return nil, err
	}
	return NewListener(l), nil
}

// NewListener makes a net.Listener of l, which is the Listener's from now on.
func NewListener(l *be.Listener) *Listener { return &Listener{l} }

// Accept waits for the next connection, a *[Conn]. net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	s, err := l.l.Accept(context.Background())
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "be", Addr: l.Addr(), Err: cause(err, net.ErrClosed)}
	}
	return New(s), nil
}

// Addr is the address that peers dial, an [Addr].
func (l *Listener) Addr() net.Addr { return Addr(l.l.Addr().String()) }

// Close stops listening; connections that were accepted stay open.
func (l *Listener) Close() error { return l.l.Close() }

// Dialer makes connections. Its DialContext fits http.Transport.
type Dialer struct {
	Node    *be.Node
	Service string // told to the listening side: be.Socket.Service
}

// Dial connects to a listener's bootstrap address.
func (d Dialer) Dial(ctx context.Context, addr string) (*Conn, error) {
	s, err := d.Node.Dial(ctx, addr, d.Service)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "be", Addr: Addr(addr), Err: err}
	}
	return New(s), nil
}

// DialContext is Dial in the form of net.Dialer's. A network that is not a stream,
// "be" or "tcp" with or without a version of IP, is a net.UnknownNetworkError.
func (d Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	switch network {
	case "be", "tcp", "tcp4", "tcp6":
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Addr: Addr(addr), Err: net.UnknownNetworkError(network)}
	}
	c, err := d.Dial(ctx, addr)
	if err != nil {
		return nil, err // not a nil *Conn
	}
	return c, nil
}
