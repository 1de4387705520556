package verbtest

import (
	"context"
	"encoding/binary"
	"net/netip"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
)

// Connections by the connection manager: the server listens at the address by which the
// client reached it and tells the port; the client dials once for each lane, and says
// in the request's private data which lane it is.

// connectCM takes every lane's queue pair to RTS.
func (rd *round) connectCM(ctx context.Context, mine, peer *endpoint) error {
	ctx, cancel := context.WithTimeoutCause(ctx, rd.c.Limit(), errors.Wrap(control.ErrTimeout, "step rdma_cm with "+rd.c.Peer()))
	defer cancel()
	if rd.client {
		return rd.dialCM(ctx, mine, peer)
	}
	return rd.acceptCM(ctx, mine, peer)
}

func (rd *round) dialCM(ctx context.Context, mine, peer *endpoint) error {
	var port uint16
	if err := rd.c.Recv("rdma_cm", &port); err != nil {
		return err
	}
	host, err := netip.ParseAddr(rd.c.PeerHost())
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(host.Unmap(), port)
	for i, f := range rd.flows {
		for j, l := range f.lanes {
			o := l.options(rd, mine, peer)
			o.Private = laneName(i, j)
			conn, err := rdmacm.Dial(ctx, at, o)
			if err != nil {
				return err
			}
			l.conn, l.q = conn, conn.QP()
		}
	}
	return rd.c.Send("connected", nil)
}

func (rd *round) acceptCM(ctx context.Context, mine, peer *endpoint) (err error) {
	host, err := netip.ParseAddr(rd.c.LocalHost())
	if err != nil {
		return err
	}
	ln, err := rdmacm.Listen(netip.AddrPortFrom(host.Unmap(), 0))
	if err != nil {
		return errors.WithMessage(err, "the client must name an address of an RDMA interface")
	}
	defer func() {
		if closeErr := ln.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := rd.c.Send("rdma_cm", ln.Addr().Port()); err != nil {
		return err
	}
	// A client that cannot go on says so instead.
	ctx, giveUp := context.WithCancelCause(ctx)
	connected := make(chan error, 1)
	go func() {
		err := rd.c.Recv("connected", nil)
		if err != nil {
			giveUp(err)
		}
		connected <- err
	}()
	for left := rd.lanes(); left > 0; left-- {
		if err := rd.acceptLane(ctx, ln, mine, peer); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
	}
	err = <-connected
	giveUp(nil)
	return err
}

func (rd *round) lanes() (n int) {
	for _, f := range rd.flows {
		n += len(f.lanes)
	}
	return n
}

// acceptLane takes the next request.
func (rd *round) acceptLane(ctx context.Context, ln *rdmacm.Listener, mine, peer *endpoint) error {
	r, err := ln.Next(ctx)
	if err != nil {
		return err
	}
	name, err := r.Private()
	if err == nil && len(name) != len(laneName(0, 0)) {
		err = errors.Errorf("the request of %q is not for a lane", name)
	}
	if err != nil {
		_ = r.Reject(nil)
		return err
	}
	i, j := int(binary.BigEndian.Uint16(name)), int(binary.BigEndian.Uint16(name[2:]))
	if i >= len(rd.flows) || j >= len(rd.flows[i].lanes) || rd.flows[i].lanes[j].conn != nil {
		_ = r.Reject(nil)
		return errors.Errorf("a request for queue pair %d of flow %d, which is not expected", j, i)
	}
	l := rd.flows[i].lanes[j]
	conn, err := r.Accept(ctx, l.options(rd, mine, peer))
	if err != nil {
		return err
	}
	l.conn, l.q = conn, conn.QP()
	return nil
}

// laneName is the private data of a lane's request.
func laneName(flow, lane int) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(flow)), uint16(lane))
}

// options are those of a lane's connection, to which its queue pair goes.
func (l *lane) options(rd *round, mine, peer *endpoint) rdmacm.Options {
	r, p := rd.r, rd.p
	mtu, reads, destReads := p.common(mine, peer)
	return rdmacm.Options{
		MakeQP: func(_ context.Context, way rdmacm.Route) (qp.QP, error) {
			if name := r.ctx.Info().Name; way.Device.Name != name || way.Port != r.portNum {
				return nil, errors.Errorf("the way from %v to %v goes by %s port %d, and the test uses %s port %d: choose that with -d and -i, or another address",
					way.Local.Addr(), way.Remote.Addr(), way.Device.Name, way.Port, name, r.portNum)
			}
			q := l.q
			l.q = nil // the connection's from now on
			return q, nil
		},
		Access: p.Op.access(), MaxReads: reads, MaxDestReads: destReads, MTU: mtu, AckTimeout: qp.AckTimeout(p.AckTimeout),
		RetryCount: p.RetryCount, RNRTimer: qp.RNRTimer(p.RNRTimer), TrafficClass: p.TrafficClass, ServiceLevel: p.ServiceLevel,
		ResolveTimeout: rd.c.Limit(), ConnectTimeout: rd.c.Limit(),
	}
}
