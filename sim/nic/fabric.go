package nic

import (
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Route is a fabric's own record of a way from one NIC to a peer's GID. A queue
// pair asks for it when it goes to RTR and puts it in each packet.
type Route any

// Ticket numbers a packet that was sent on a route.
type Ticket uint64

// Fabric carries packets between NICs. Its methods are called from within the
// NIC's methods; they must not call back into that NIC.
type Fabric interface {
	// Route finds the way from a NIC's GID to the peer of an address vector. A
	// peer that does not exist need be no error: packets to it are lost.
	Route(n *NIC, sgid verbs.GIDEntry, av *qp.AV) (Route, error)
	// Send carries p along p.Route. The packet is the fabric's only during the
	// call, so it keeps a copy; the payload's memory may be taken back later, which
	// Payload notices.
	Send(n *NIC, p *Packet) Ticket
	// Processed reports whether the packet with this ticket, and all before it on
	// the route, were processed by the peer's NIC or lost, with every answer
	// delivered. A fabric that cannot know says true.
	Processed(r Route, t Ticket) bool
	// Ring asks whoever drives the queue pair's NIC to call Ring for it soon: n has
	// just done the last reading from the memory of its requests.
	Ring(n *NIC, q *QP)
}
