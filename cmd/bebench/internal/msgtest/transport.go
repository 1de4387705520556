package msgtest

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/benode"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/counts"
	"github.com/byteexpress/byteexpress/verbs"
)

// Names of transports: what carries the messages, and the name of the rows.
const (
	OverBE  = "be"
	OverTCP = "tcp"
)

// socket carries messages between the two ends. Its contracts are those of be.Socket:
// a buffer is the transport's from Post until done.
type socket interface {
	Post(b []byte, done func(error)) error
	Recv(ctx context.Context) ([]byte, error)
	MaxMessage() int
	Close() error
}

// transport makes sockets and the buffers that they carry.
type transport interface {
	alloc(n int) ([]byte, error)
	free(b []byte)
	listen(host string) (addr string, err error)
	accept(ctx context.Context) (s socket, number string, err error)
	dial(ctx context.Context, addr string, number int) (socket, error)
	read() reading            // what it has counted; empty: it counts nothing
	queues() map[string]int64 // how long its queues are at the moment; nil: not known
	close() error
}

// open gives the transport of the parameters, on the opened device if it is on one.
func (p *Params) open(dev verbs.Device) (transport, error) {
	if p.Transport == OverTCP {
		return &overTCP{batch: !p.Latency, send: p.TCPBuffer}, nil
	}
	node, err := benode.Open(dev, p.Node, p.CM)
	if err != nil {
		return nil, err
	}
	return &overBE{node: node, p: p}, nil
}

// overBE is a node of ByteExpress.
type overBE struct {
	node *benode.Node
	ln   *be.Listener
	p    *Params
}

func (o *overBE) alloc(n int) ([]byte, error) { return o.node.Alloc(n) }
func (o *overBE) free(b []byte)               { o.node.Free(b) }

func (o *overBE) listen(host string) (addr string, err error) {
	if o.ln, err = o.node.Listen(net.JoinHostPort(host, "0")); err != nil {
		return "", err
	}
	return o.ln.Addr().String(), nil
}

func (o *overBE) accept(ctx context.Context) (socket, string, error) {
	s, err := o.ln.Accept(ctx)
	if err != nil {
		return nil, "", err
	}
	number := s.Service()
	i, _ := strconv.Atoi(number)
	return s, number, o.prepare(s, i)
}

func (o *overBE) dial(ctx context.Context, addr string, number int) (socket, error) {
	for {
		s, err := o.node.DialWith(ctx, addr, strconv.Itoa(number), be.SocketOptions{Unordered: o.p.Unordered})
		if err == nil {
			return s, o.prepare(s, number)
		}
		if !errors.Is(err, be.ErrBusy) {
			return nil, err
		}
		select { // the server has not had time to accept
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Millisecond):
		}
	}
}

// prepare sets what a socket has of its own.
func (o *overBE) prepare(s *be.Socket, number int) error {
	if o.p.Get {
		if err := s.SetGet(true); err != nil {
			return err
		}
	}
	if w := o.p.weight(number); w > 1 {
		return s.SetWeight(w)
	}
	return nil
}

func (o *overBE) read() reading {
	st := o.node.Stats()
	r := reading{node: counts.Of(&st), device: o.node.DeviceCounts()}
	r.engines = o.node.EngineStats()
	return r
}

func (o *overBE) queues() map[string]int64 {
	st := o.node.Stats()
	return counts.Levels(&st)
}

func (o *overBE) close() error {
	if o.ln != nil {
		_ = o.ln.Close()
	}
	return o.node.Close()
}
