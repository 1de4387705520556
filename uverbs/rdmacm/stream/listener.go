package stream

import (
	"context"
	"net"
	"sync"

	"github.com/byteexpress/byteexpress/verbs"
	"github.com/pkg/errors"
)

// maxComing is how many connections of one listener may be coming up, or wait for
// Accept; more are rejected.
const maxComing = 256

// listener takes streams that peers dial.
type listener struct {
	n     *Net
	from  requests
	life  context.Context
	end   context.CancelCauseFunc
	work  sync.WaitGroup
	slots chan struct{}
	conns chan *Conn
	once  sync.Once
	err   error // of Close
}

// Listen listens at "host:port" as Dial has it: on one address of an RDMA interface, or
// on all with an unspecified or no host. Port 0 takes a free one. Clients that come
// over another device than ours, or that speak something else, are rejected.
func (n *Net) Listen(addr string) (net.Listener, error) {
	at, err := resolve(context.Background(), addr)
	if err != nil {
		return nil, err
	}
	from, err := n.cm.Listen(at[0])
	if err != nil {
		return nil, err
	}
	l := &listener{n: n, from: from, slots: make(chan struct{}, maxComing), conns: make(chan *Conn, maxComing)}
	l.life, l.end = context.WithCancelCause(context.Background())
	l.work.Go(l.serve)
	return l, nil
}

func (l *listener) serve() {
	for {
		r, err := l.from.Next(l.life)
		if err != nil {
			l.end(err)
			return
		}
		select {
		case l.slots <- struct{}{}:
			l.work.Go(func() { l.greet(r) })
		default:
			_ = r.Reject([]byte("too many connections are coming up"))
		}
	}
}

// greet brings one connection up. Its slot is free when Accept took it, or it failed.
func (l *listener) greet(r request) {
	c, err := l.n.newConn()
	if err != nil {
		_ = r.Reject(nil)
		<-l.slots
		return
	}
	if c.link, err = r.Accept(l.life, c.options()); err != nil {
		c.release()
		<-l.slots
		return
	}
	if c.begin() != nil {
		<-l.slots
		return
	}
	l.conns <- c // has as much room as there are slots
}

// Accept gives the next stream. The error wraps [net.ErrClosed] after Close, and
// [verbs.ErrDeviceLost] when the device was removed.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		<-l.slots
		return c, nil
	case <-l.life.Done():
		err := context.Cause(l.life)
		if errors.Is(err, verbs.ErrClosed) {
			err = net.ErrClosed
		}
		return nil, errors.WithMessagef(err, "rdma_cm: accept on %v", l.from.Addr())
	}
}

// Addr is the address that peers dial.
func (l *listener) Addr() net.Addr { return Addr(l.from.Addr()) }

// Close stops listening; streams that nobody accepted are closed.
func (l *listener) Close() error {
	first := false
	l.once.Do(func() {
		first = true
		l.end(net.ErrClosed)
		l.err = l.from.Close()
		l.work.Wait()
		for len(l.conns) > 0 {
			_ = (<-l.conns).Close()
		}
	})
	if !first {
		return net.ErrClosed
	}
	return l.err
}
