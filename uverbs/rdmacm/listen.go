package rdmacm

import (
	"cmp"
	"context"
	"net/netip"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Listener takes connect requests. Next and Accept belong to one goroutine at a time;
// Close may be called from any.
type Listener struct {
	id     *ID
	addr   netip.AddrPort
	closed atomic.Bool
}

// Listen listens by the connection manager of the kernel that runs.
func Listen(addr netip.AddrPort) (*Listener, error) { return (&System{}).Listen(addr) }

// Listen listens on an address of an RDMA interface, or on an unspecified one for all of
// them; port 0 takes a free one, see [Listener.Addr].
func (s *System) Listen(addr netip.AddrPort) (*Listener, error) {
	ch, err := s.Open()
	if err != nil {
		return nil, err
	}
	l := &Listener{}
	if l.id, err = ch.CreateID(); err != nil {
		ch.Close()
		return nil, err
	}
	if err = l.id.Bind(addr); err == nil {
		err = l.id.Listen(0)
	}
	if err == nil {
		l.addr, err = l.id.LocalAddr()
	}
	if err != nil {
		l.Close()
		return nil, about(err, addr)
	}
	return l, nil
}

// Addr is the address that the listener has.
func (l *Listener) Addr() netip.AddrPort { return l.addr }

// Next waits for a connect request. The error is ctx's, or wraps [verbs.ErrClosed] or
// [verbs.ErrDeviceLost].
func (l *Listener) Next(ctx context.Context) (*Request, error) {
	for {
		e, err := l.id.Next(ctx)
		switch {
		case err != nil:
			return nil, fail(cmdListen.op, l.addr.String(), err)
		case e.Type == DeviceRemoval:
			return nil, fail(cmdListen.op, l.addr.String(), verbs.ErrDeviceLost)
		case e.New != nil:
			l.id.c.retain()
			return &Request{id: e.New, Param: e.Param}, nil
		}
	}
}

// Accept takes the next request and accepts it. An error that does not end the
// listener is of that one request.
func (l *Listener) Accept(ctx context.Context, o Options) (*Conn, error) {
	r, err := l.Next(ctx)
	if err != nil {
		return nil, err
	}
	return r.Accept(ctx, o)
}

// Close stops listening; Next returns [verbs.ErrClosed]. Requests that nobody took are
// rejected, connections live on.
func (l *Listener) Close() error {
	if l.closed.Swap(true) {
		return fail("close", l.addr.String(), verbs.ErrClosed)
	}
	return first(l.id.Close(), l.id.c.release())
}

// Request is a peer's wish for a connection. It is to be accepted or rejected, once.
type Request struct {
	Param ConnParam // what the peer told
	id    *ID
}

// Private is the peer's private data, of [Frame].
func (r *Request) Private() ([]byte, error) { return Unframe(r.Param.Private) }

// Accept makes the queue pair and the connection. An error names the step that failed;
// the request is rejected then, and nothing left behind.
func (r *Request) Accept(ctx context.Context, o Options) (*Conn, error) {
	c := &Conn{id: r.id}
	if err := c.accept(ctx, r, &o); err != nil {
		c.abandon()
		return nil, err
	}
	return c, nil
}

func (c *Conn) accept(ctx context.Context, r *Request, o *Options) error {
	private, err := o.private()
	if err == nil {
		c.private, err = o.received(r.Param.Private)
	}
	if err != nil {
		return fail(cmdAccept.op, "", err)
	}
	if err := c.makeQP(ctx, o); err != nil {
		return err
	}
	if err := c.ready(o); err != nil {
		return err
	}
	err = c.id.Accept(ConnParam{
		QPNum: c.q.Num(), Private: private, MaxReads: min(o.MaxReads, r.Param.MaxReads), MaxDestReads: min(o.MaxDestReads, r.Param.MaxDestReads),
		RetryCount: cmp.Or(o.RetryCount, qp.DefaultRetryCount), RNRRetry: cmp.Or(o.RNRRetry, qp.DefaultRNRRetry),
	})
	if err != nil {
		return err
	}
	_, err = c.await(ctx, Established, cmdAccept.op, cmp.Or(o.ConnectTimeout, DefaultConnectTimeout))
	return err
}

// Reject refuses the request; the peer sees [ReasonConsumer] and private, which is sent
// with its length in front (see Frame): up to 147 bytes.
func (r *Request) Reject(private []byte) error {
	framed, err := Frame(private)
	if err == nil {
		err = r.id.Reject(framed)
	}
	return first(err, r.id.Close(), r.id.c.release())
}
