package archon

import (
	"context"
	"net"

	"github.com/byteexpress/byteexpress/be"
	"github.com/pkg/errors"
)

// BE is the transport over ByteExpress: messages go out of registered memory and
// arrive in it.
type BE struct {
	Node *be.Node // lives longer than all sockets and buffers of the transport
}

var errNoNode = errors.New("be: the transport has no Node: set archon.BE.Node")

// Dial connects to a listener of a ByteExpress node at its TCP address.
func (t BE) Dial(ctx context.Context, addr, service string) (Socket, error) {
	if t.Node == nil {
		return nil, errNoNode
	}
	if err := checkService(service); err != nil {
		return nil, errors.WithMessage(err, "be")
	}
	s, err := t.Node.Dial(ctx, addr, service)
	if err != nil {
		return nil, err
	}
	return newBESocket(s, t.Node), nil
}

// Listen takes connections at a TCP address, which carries the bootstrap only.
func (t BE) Listen(addr string) (Listener, error) {
	if t.Node == nil {
		return nil, errNoNode
	}
	l, err := t.Node.Listen(addr)
	if err != nil {
		return nil, err
	}
	return beListener{l, t.Node}, nil
}

// BESocket is the socket of a client that is connected by ByteExpress, for what is no
// call (be.Socket.Read); nil: it is not. It stays the client's.
func (c *Client) BESocket() *be.Socket {
	if s, ok := c.sock.(*beSocket); ok {
		return s.Socket
	}
	return nil
}

type beListener struct {
	l    *be.Listener
	node *be.Node
}

func (l beListener) Accept(ctx context.Context) (Socket, error) {
	s, err := l.l.Accept(ctx)
	if errors.Is(err, be.ErrClosed) {
		return nil, errors.WithMessage(net.ErrClosed, "be")
	}
	if err != nil {
		return nil, err
	}
	return newBESocket(s, l.node), nil
}

func (l beListener) Addr() net.Addr { return l.l.Addr() }
func (l beListener) Close() error   { return l.l.Close() }
