package rdmacm

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Defaults of the timeouts in Options.
const (
	DefaultResolveTimeout = 2 * time.Second // as librdmacm's own programs
	DefaultConnectTimeout = 10 * time.Second
)

// Options says how one end of a connection is made.
type Options struct {
	// MakeQP makes the queue pair, in state RESET, on the route's device and port. The
	// connection owns it from then on. It is called on the goroutine of Dial or Accept.
	MakeQP func(ctx context.Context, r Route) (qp.QP, error)
	// Ready, if not nil, is called when the queue pair is in INIT: the place to post the
	// first receives, before the peer can send.
	Ready func(q qp.QP) error

	Local netip.AddrPort // Dial: our address; zero is any

	Access       mr.Access // what the peer may do through the queue pair
	MaxReads     uint8     // READs and atomics that we may have outstanding; 0: none can be posted
	MaxDestReads uint8     // and the peer. Both are lowered to what the other side allows
	RetryCount   uint8     // 0 is qp.DefaultRetryCount
	RNRRetry     uint8     // 0 is qp.DefaultRNRRetry

	// Of our queue pair, instead of what the connection manager chooses; 0 leaves that.
	MTU          qp.MTU        // at most; the peer's must be the same, so both lower it or neither
	AckTimeout   qp.AckTimeout // the connection manager's is 17 or 19: 0.5 s or 2.1 s
	RNRTimer     qp.RNRTimer   // 0 is qp.DefaultRNRTimer
	TrafficClass uint8         // on RoCE v2: DSCP << 2 | ECN. Dial asks the connection manager's route for it too
	ServiceLevel uint8

	// Private is sent along with the request or its acceptance, with its length in front
	// (see Frame): up to 55 and 195 bytes. The peer must do the same, unless RawPrivate is
	// set: then data goes and comes as it is.
	Private    []byte
	RawPrivate bool

	ResolveTimeout time.Duration // of the address, and again of the route; 0 is DefaultResolveTimeout
	ConnectTimeout time.Duration // for the peer's answer; 0 is DefaultConnectTimeout
}

// Dial connects to a listener by the connection manager of the kernel that runs.
func Dial(ctx context.Context, addr netip.AddrPort, o Options) (*Conn, error) {
	return (&System{}).Dial(ctx, addr, o)
}

// Dial connects to a listener. An error names the step that failed and leaves nothing
// behind. It wraps a [Reason] when the peer rejected, and [context.DeadlineExceeded] or
// ETIMEDOUT when a step took too long.
func (s *System) Dial(ctx context.Context, addr netip.AddrPort, o Options) (*Conn, error) {
	private, err := o.private()
	if err != nil {
		return nil, fail(cmdConnect.op, addr.String(), err)
	}
	ch, err := s.Open()
	if err != nil {
		return nil, err
	}
	id, err := ch.CreateID()
	if err != nil {
		ch.Close()
		return nil, err
	}
	c := &Conn{id: id, route: Route{Remote: addr}}
	if err := c.dial(ctx, addr, &o, private); err != nil {
		c.abandon()
		return nil, about(err, addr)
	}
	return c, nil
}

func (c *Conn) dial(ctx context.Context, addr netip.AddrPort, o *Options, private []byte) error {
	resolve := cmp.Or(o.ResolveTimeout, DefaultResolveTimeout)
	err := ctx.Err()
	if err != nil {
		return fail(cmdResolveIP.op, addr.String(), context.Cause(ctx))
	}
	if o.TrafficClass != 0 {
		err = c.id.SetTOS(o.TrafficClass)
	}
	if err == nil {
		err = c.id.ResolveAddr(o.Local, addr, resolve)
	}
	if err == nil {
		_, err = c.await(ctx, AddrResolved, cmdResolveIP.op, resolve)
	}
	if err == nil {
		err = c.id.ResolveRoute(resolve)
	}
	if err == nil {
		_, err = c.await(ctx, RouteResolved, cmdResolveRoute.op, resolve)
	}
	if err == nil {
		err = c.makeQP(ctx, o)
	}
	if err != nil {
		return err
	}
	err = c.id.Connect(ConnParam{
		QPNum: c.q.Num(), Private: private, MaxReads: o.MaxReads, MaxDestReads: o.MaxDestReads,
		RetryCount: cmp.Or(o.RetryCount, qp.DefaultRetryCount), RNRRetry: cmp.Or(o.RNRRetry, qp.DefaultRNRRetry),
	})
	if err != nil {
		return err
	}
	e, err := c.await(ctx, ConnectResponse, cmdConnect.op, cmp.Or(o.ConnectTimeout, DefaultConnectTimeout))
	if err != nil {
		return err
	}
	if c.private, err = o.received(e.Param.Private); err != nil {
		return fail(cmdConnect.op, addr.String(), err)
	}
	if err := c.ready(o); err != nil {
		return err
	}
	return c.id.Establish()
}

// makeQP makes the queue pair and takes it to INIT.
func (c *Conn) makeQP(ctx context.Context, o *Options) (err error) {
	if c.route, err = c.id.Route(); err != nil {
		return err
	}
	if c.route.Device.NodeType == nodeRNIC {
		missing := c.route.Device.Name + ", an iWARP device"
		return fail("make queue pair", c.route.Remote.String(), &verbs.UnsupportedError{Feature: "RDMA CM", Missing: missing})
	}
	if o.MakeQP == nil {
		return fail("make queue pair", c.route.Remote.String(), errNoQP)
	}
	if c.q, err = o.MakeQP(ctx, c.route); err == nil && c.q == nil {
		err = errNoQP
	}
	if err != nil {
		return errors.Wrapf(err, "queue pair on %s for %v", c.route.Device.Name, c.route.Remote)
	}
	if err := c.modify(qp.Init, o); err != nil || o.Ready == nil {
		return err
	}
	return errors.Wrap(o.Ready(c.q), "receives of the new queue pair")
}

// nodeRNIC is the node type of iWARP devices (RDMA_NODE_RNIC, rdma/ib_verbs.h).
const nodeRNIC = 4

var errNoQP = errors.New("Options.MakeQP gives no queue pair")

// ready takes the queue pair from INIT to RTS.
func (c *Conn) ready(o *Options) error {
	if err := c.modify(qp.RTR, o); err != nil {
		return err
	}
	return c.modify(qp.RTS, o)
}

func (c *Conn) modify(state qp.State, o *Options) error {
	a, mask, err := c.id.InitQPAttr(state, o.Access)
	if err != nil {
		return err
	}
	// Before Accept the kernel knows the peer's wishes only.
	a.MaxReads, a.MaxDestReads = min(a.MaxReads, o.MaxReads), min(a.MaxDestReads, o.MaxDestReads)
	if o.MTU != 0 {
		a.PathMTU = min(a.PathMTU, o.MTU)
	}
	a.AckTimeout, a.RNRTimer = cmp.Or(o.AckTimeout, a.AckTimeout), cmp.Or(o.RNRTimer, a.RNRTimer)
	a.AV.TrafficClass, a.AV.SL = cmp.Or(o.TrafficClass, a.AV.TrafficClass), cmp.Or(o.ServiceLevel, a.AV.SL)
	return errors.Wrapf(c.q.Modify(&a, mask), "queue pair to %v", state)
}

// await waits for the event that ends a step.
func (c *Conn) await(ctx context.Context, want EventType, step string, timeout time.Duration) (Event, error) {
	object := c.route.Remote.String()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded))
	defer cancel()
	for {
		e, err := c.id.Next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return e, fail(step, object, context.Cause(ctx))
		case err != nil:
			return e, fail(step, object, err)
		case e.ends() != nil:
			return e, fail(step, object, e.ends())
		case e.Type == want:
			return e, nil
		case e.Type == Disconnected:
			return e, fail(step, object, errors.New("the peer disconnected"))
		}
	}
}

// private gives the bytes to send.
func (o *Options) private() ([]byte, error) {
	if o.RawPrivate || len(o.Private) == 0 {
		return o.Private, nil
	}
	return Frame(o.Private)
}

// received gives the peer's private data.
func (o *Options) received(b []byte) ([]byte, error) {
	if o.RawPrivate {
		return b, nil
	}
	return Unframe(b)
}
