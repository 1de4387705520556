package nic

import (
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// remoteAccess is what a queue pair's access flags may hold.
const remoteAccess = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic | mr.RelaxedOrdering

// Modify sets attributes of a queue pair, as qp.QP.Modify. Errors wrap
// qp.ErrTransition, EINVAL (a value out of range) or ENODEV (a source GID that
// this host cannot use). On an error nothing was changed. After a move to RESET
// the driver waits until the queue pair is Idle before it lets anyone post.
func (n *NIC) Modify(q *QP, a *qp.Attr, mask qp.AttrMask) error {
	from, to := q.state, q.state
	if mask&qp.MaskState != 0 {
		to = a.State
	}
	if mask&qp.MaskCurState != 0 && a.CurState != from {
		return fmt.Errorf("%w: the queue pair is in %v, not in %v", qp.ErrTransition, from, a.CurState)
	}
	if err := qp.CheckTransition(from, to, mask|qp.MaskState); err != nil {
		return err
	}
	if err := n.checkAttr(q, a, mask); err != nil {
		return err
	}
	var sgid verbs.GIDEntry
	var route Route
	if mask&qp.MaskAV != 0 {
		port := int(q.port)
		if mask&qp.MaskPort != 0 {
			port = int(a.Port)
		}
		var err error
		if sgid, err = n.sourceGID(port, a.AV.SGIDIndex); err != nil {
			return err
		}
		if route, err = n.fabric.Route(n, sgid, &a.AV); err != nil {
			return err
		}
	}
	q.set(a, mask)
	if mask&qp.MaskAV != 0 {
		q.sgid, q.sgType, q.route = sgid.GID, sgid.Type, route
	}
	n.move(q, from, to, a, mask)
	return nil
}

func (n *NIC) checkAttr(q *QP, a *qp.Attr, mask qp.AttrMask) error {
	if err := a.CheckValues(mask); err != nil {
		return err
	}
	port := int(q.port)
	if mask&qp.MaskPort != 0 {
		port = int(a.Port)
		if port > len(n.ports) {
			return invalid("port", port, 1, len(n.ports))
		}
	}
	d := &n.cfg.Attr
	p := &n.ports[port-1]
	for _, c := range []struct {
		bit       qp.AttrMask
		what      string
		v         int
		low, high int
	}{
		{qp.MaskPKeyIndex, "P_Key index", int(a.PKeyIndex), 0, p.PKeys - 1},
		{qp.MaskPathMTU, "path MTU in bytes (at most the port's active MTU)", a.PathMTU.Bytes(), 256, p.ActiveMTU.Bytes()},
		{qp.MaskMaxReads, "max reads", int(a.MaxReads), 0, d.MaxReads},
		{qp.MaskMaxDestReads, "max destination reads", int(a.MaxDestReads), 0, d.MaxDestReads},
	} {
		if mask&c.bit != 0 && (c.v < c.low || c.v > c.high) {
			return invalid(c.what, c.v, c.low, c.high)
		}
	}
	if mask&qp.MaskAccess != 0 && a.Access&^remoteAccess != 0 {
		return fmt.Errorf("%w: access flags %v do not apply to a queue pair", syscall.EINVAL, a.Access&^remoteAccess)
	}
	if mask&qp.MaskAV != 0 {
		if p.LinkLayer == verbs.LinkEthernet && !a.AV.Global {
			return fmt.Errorf("%w: RoCE needs a global address vector: set AV.Global and the peer's GID", syscall.EINVAL)
		}
		if a.AV.Port != 0 && int(a.AV.Port) != port {
			return fmt.Errorf("%w: address vector for port %d, queue pair on port %d", syscall.EINVAL, a.AV.Port, port)
		}
	}
	return nil
}

func invalid(what string, v, low, high int) error {
	return &qp.ValueError{What: what, Value: v, Low: low, High: high}
}

// sourceGID finds our GID. As on Linux, an empty entry is EINVAL and one whose
// network interface is not in our namespace is ENODEV.
func (n *NIC) sourceGID(port int, index uint8) (verbs.GIDEntry, error) {
	for _, g := range n.ports[port-1].GIDs {
		if g.Index != int(index) || g.GID.IsZero() {
			continue
		}
		if g.Foreign {
			return verbs.GIDEntry{}, fmt.Errorf("%w: GID index %d of port %d (%v) belongs to a network interface outside this network namespace: use another index",
				syscall.ENODEV, index, port, g.GID)
		}
		return g.GIDEntry, nil
	}
	return verbs.GIDEntry{}, fmt.Errorf("%w: GID index %d of port %d is empty", syscall.EINVAL, index, port)
}

// set takes over the attributes that the mask names.
func (q *QP) set(a *qp.Attr, mask qp.AttrMask) {
	d := &q.attr
	put := func(bit qp.AttrMask, f func()) {
		if mask&bit != 0 {
			f()
		}
	}
	put(qp.MaskAccess, func() { d.Access = a.Access })
	put(qp.MaskPKeyIndex, func() { d.PKeyIndex = a.PKeyIndex })
	put(qp.MaskPort, func() { d.Port, q.port = a.Port, a.Port })
	put(qp.MaskAV, func() { d.AV = a.AV })
	put(qp.MaskPathMTU, func() { d.PathMTU = a.PathMTU })
	put(qp.MaskAckTimeout, func() { d.AckTimeout = a.AckTimeout })
	put(qp.MaskRetryCount, func() { d.RetryCount, q.retryLeft = a.RetryCount, a.RetryCount })
	put(qp.MaskRNRRetry, func() { d.RNRRetry, q.rnrLeft = a.RNRRetry, a.RNRRetry })
	put(qp.MaskRecvPSN, func() { d.RecvPSN = a.RecvPSN })
	put(qp.MaskMaxReads, func() { d.MaxReads = a.MaxReads })
	put(qp.MaskRNRTimer, func() { d.RNRTimer = a.RNRTimer })
	put(qp.MaskSendPSN, func() { d.SendPSN = a.SendPSN })
	put(qp.MaskMaxDestReads, func() { d.MaxDestReads = a.MaxDestReads })
	put(qp.MaskDestNum, func() { d.DestNum = a.DestNum })
}

// move takes the queue pair to a state whose attributes are set.
func (n *NIC) move(q *QP, from, to qp.State, a *qp.Attr, mask qp.AttrMask) {
	switch {
	case to == qp.Err:
		n.enterErr(q)
		q.soft.Store(uint32(qp.Err))
		return
	case to == qp.Reset:
		n.timers.remove(q)
		q.newLife()
		return
	case to == qp.RTR && from != qp.RTR:
		q.mtu = unlimited
		if n.cfg.Segment {
			q.mtu = q.attr.PathMTU.Bytes()
		}
		q.startResponder()
	case to == qp.RTS && from == qp.RTR:
		q.startRequester()
	}
	q.state = to
	q.soft.Store(uint32(to))
	if to == qp.SQD {
		q.drainTold = mask&qp.MaskSQDNotify == 0
	}
	n.wake(q)
}
