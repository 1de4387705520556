package nic

import (
	"slices"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Port gives a copy of a port's state; ports count from 1.
func (n *NIC) Port(port int) (Port, bool) {
	if port < 1 || port > len(n.ports) {
		return Port{}, false
	}
	p := n.ports[port-1]
	p.GIDs = slices.Clone(p.GIDs)
	return p, true
}

// Ports is how many ports the NIC has.
func (n *NIC) Ports() int { return len(n.ports) }

func (n *NIC) portUp(port uint8) bool {
	return n.ports[port-1].State == verbs.PortActive
}

// SetPortState takes the link of a port up or down, with its event. Packets of a
// port that is not active are lost.
func (n *NIC) SetPortState(port int, s verbs.PortState) {
	p := &n.ports[port-1]
	if p.State == s {
		return
	}
	was := p.State
	p.State = s
	switch {
	case s == verbs.PortActive:
		n.event(Event{Type: verbs.EventPortActive, Port: port})
	case was == verbs.PortActive:
		n.event(Event{Type: verbs.EventPortError, Port: port})
	}
}

// SetGIDs replaces a port's GID table, with its event. Queue pairs whose source
// GID is no longer at its index go on sending from the old one, which the fabric
// no longer delivers to.
func (n *NIC) SetGIDs(port int, gids []GID) {
	n.ports[port-1].GIDs = slices.Clone(gids)
	n.event(Event{Type: verbs.EventGIDChange, Port: port})
}

// Lose ends the NIC: it does nothing any more. Its driver tells the owners.
func (n *NIC) Lose() {
	n.lost = true
	n.event(Event{Type: verbs.EventDeviceFatal})
	for _, q := range n.qps.slots {
		if q != nil {
			q.lease.stop()
		}
	}
}

// takes reports whether a packet can be for this queue pair: its port is up, its
// state takes packets, and it comes from the connected peer (IBTA 1.4, 9.6).
func (q *QP) takes(p *Packet) bool {
	switch q.state {
	case qp.RTR, qp.RTS, qp.SQD:
	default:
		return false
	}
	return p.SGID == q.attr.AV.DGID && p.DGID == q.sgid && p.GIDType == q.sgType && q.nic.portUp(q.port)
}
