package nic

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/dma"
	"github.com/byteexpress/byteexpress/verbs"
)

const (
	// quantum is how many packets a queue pair sends in its turn.
	quantum = 256
	// inflight bounds the request packets of a queue pair that are not
	// acknowledged, by default: far below the 2^23 that PSNs can tell apart.
	inflight = 1024
	// ackEvery is how often a long message asks for an acknowledgement, in packets.
	ackEvery = 64
	// holdTime is how long the option HoldSends keeps a completion back at most.
	holdTime = 200 * time.Microsecond
	// unlimited is the payload of one packet without segmentation.
	unlimited = qp.MaxMessage
)

// GID is an entry of a port's GID table. A foreign entry belongs to a network
// interface outside our network namespace: it is listed but no queue pair can
// use it, as when the interface cannot be read.
type GID struct {
	verbs.GIDEntry
	Foreign bool
}

// Port is a port's state. An entry of GIDs that is zero is empty.
type Port struct {
	verbs.PortAttr
	GIDs []GID
}

// Config is what a NIC is made of. It is not changed after New.
type Config struct {
	Attr  verbs.DeviceAttr // limits
	Ports []Port           // the NIC keeps a copy
	// Segment cuts messages into packets of the path MTU. Otherwise a message is
	// one packet, whatever the path MTU.
	Segment bool
	// HoldSends lets receive completions overtake up to that many send completions
	// of the same CQ (a fault for tests); 0: in order.
	HoldSends int
	// Offer, if not nil, leaves it to the driver when packets of requests and of answers
	// to READs go out, as a fabric with a rate does: instead of sending, Run offers a
	// queue pair that has some, and again only after Transmit was called for it. It must
	// not call the NIC.
	Offer func(q *QP)
	// Inflight bounds the request packets of a queue pair that are not acknowledged,
	// to less than 2^23. 0: 1024.
	Inflight int32
	// SkipWrites leaves the payload of WRITEs where it is, for runs in which nobody
	// reads it and copying would be most of the work. All else is as ever: memory
	// and keys are checked, and the bytes of SENDs arrive.
	SkipWrites bool
	// Rand is the source of keys and queue pair numbers. It must not be nil.
	Rand *rand.Rand
	// Event takes asynchronous events; it must not call the NIC. May be nil.
	Event func(Event)
}

// NIC is one RDMA NIC. See the package's documentation for who may call what.
type NIC struct {
	Owner any // the driver's

	cfg    Config
	fabric Fabric
	ports  []Port
	now    time.Duration
	stats  Stats
	lost   bool

	keys    keyTable
	windows windowTable
	qps     qpTable
	nextNum qp.Num

	ready      []*QP // have something to do in Run
	spare      []*QP
	timers     timers
	overflowed []*CQ
	holding    []*CQ // have send completions held back
	heldUntil  time.Duration

	writes heldWrites // in DeliverAll
	dma    dma.Engine
	pkt    Packet  // to be sent; lives here so that it does not move to the heap each time
	word   [8]byte // an atomic's result on its way to memory
}

// New makes a NIC on a fabric.
func New(cfg Config, f Fabric) *NIC {
	n := &NIC{cfg: cfg, fabric: f}
	n.cfg.Inflight = cmp.Or(cfg.Inflight, inflight)
	n.ports = append(n.ports, cfg.Ports...)
	n.keys.mask = cfg.Rand.Uint32() &^ rkeyFlip
	n.nextNum = qp.Num(cfg.Rand.Uint32())
	return n
}

// QP gives the queue pair of a number, nil if there is none.
func (n *NIC) QP(num qp.Num) *QP { return n.qps.get(num) }

// Deliver takes a packet that arrived. The packet is the caller's again on
// return.
func (n *NIC) Deliver(now time.Duration, p *Packet) {
	n.now = now
	n.deliver(p)
	n.settle()
}

func (n *NIC) deliver(p *Packet) {
	n.stats.PacketsReceived++
	q := n.dest(p)
	if q == nil || n.lost || !q.takes(p) {
		n.stats.PacketsDropped++
		return
	}
	f := p.Op.flags()
	if n.writes.q != q || f&isWrite == 0 {
		n.settle()
	}
	switch {
	case f&isResponse != 0:
		n.response(q, p, f)
	case f&isRequest != 0:
		n.request(q, p, f)
	default:
		n.stats.PacketsDropped++
	}
}

// dest is the queue pair that a packet is for, nil if there is none.
func (n *NIC) dest(p *Packet) *QP {
	if q := p.To; q != nil && q.num == p.DestQP && !q.gone {
		return q
	}
	return n.qps.get(p.DestQP)
}

// Ring is the doorbell of a queue pair.
func (n *NIC) Ring(q *QP) {
	n.stats.Doorbells++
	n.wake(q)
}

// wake puts q on the list of those that have something to do.
func (n *NIC) wake(q *QP) {
	if !q.isReady {
		q.isReady = true
		n.ready = append(n.ready, q)
	}
}

// Run does what is due: timers, responses, acknowledgements, and at most one
// quantum of sends for each queue pair that has some. more: call again, after
// the fabric had its turn.
func (n *NIC) Run(now time.Duration) (more bool) {
	n.now = now
	if n.lost {
		return false
	}
	for q := n.timers.pop(now); q != nil; q = n.timers.pop(now) {
		n.expire(q)
		n.timers.arm(q)
	}
	for len(n.ready) > 0 && !more {
		turn := n.ready
		n.ready = n.spare[:0]
		for i, q := range turn {
			turn[i] = nil
			q.isReady = false
			if n.serve(q) {
				n.wake(q)
				more = true
			}
		}
		n.spare = turn
	}
	if len(n.holding) > 0 && now >= n.heldUntil {
		for i, c := range n.holding {
			n.holding[i], c.inList = nil, false
			c.releaseHeld()
		}
		n.holding = n.holding[:0]
	}
	n.failOverflowed()
	return more
}

// serve gives q its turn.
func (n *NIC) serve(q *QP) (more bool) {
	if q.state == qp.Err {
		n.flush(q)
		return false
	}
	if n.cfg.Offer != nil {
		if len(q.pending) == 0 {
			n.acknowledge(q)
		}
		if !q.offered && (len(q.pending) > 0 || q.wantsToSend()) {
			q.offered = true
			n.cfg.Offer(q)
		}
		n.timers.arm(q)
		return false
	}
	if _, more = n.respond(q, quantum); !more {
		n.acknowledge(q)
	}
	more = n.transmit(q, quantum) || more
	n.timers.arm(q)
	return more
}

// Transmit sends up to budget packets of a queue pair that was offered, answers to
// READs and atomics first. more: it has more to send now; otherwise it will be offered
// again when it has.
func (n *NIC) Transmit(now time.Duration, q *QP, budget int) (more bool) {
	n.now = now
	if n.lost {
		return false
	}
	if q.state != qp.Err {
		if budget, more = n.respond(q, budget); !more {
			n.acknowledge(q)
		}
	}
	if !more {
		more = n.transmit(q, budget)
	}
	q.offered = more
	n.timers.arm(q)
	n.failOverflowed()
	return more
}

// failOverflowed takes the queue pairs of overflowed CQs to the error state.
func (n *NIC) failOverflowed() {
	for len(n.overflowed) > 0 {
		c := n.overflowed[len(n.overflowed)-1]
		n.overflowed = n.overflowed[:len(n.overflowed)-1]
		for _, q := range c.qps {
			if q.state != qp.Err && q.state != qp.Reset {
				n.qpEvent(q, verbs.EventQPFatal)
				n.enterErr(q)
			}
		}
	}
}

// Deadline is when Run must be called again at the latest, if at all.
func (n *NIC) Deadline() (at time.Duration, ok bool) {
	at = never
	if len(n.timers) > 0 {
		at = n.timers[0].at
	}
	if len(n.holding) > 0 {
		at = min(at, n.heldUntil)
	}
	return at, at != never && !n.lost
}

// send hands the prepared packet to the fabric.
func (n *NIC) send(q *QP) {
	p := &n.pkt
	n.stats.PacketsSent++
	n.stats.BytesSent += uint64(p.Payload.n)
	if !n.portUp(q.port) {
		return // lost on the way out
	}
	if t := n.fabric.Send(n, p); t > 0 {
		q.ticket = max(q.ticket, t)
	}
}

// header starts the next packet of q with all that its packets have in common.
func (n *NIC) header(q *QP, op Op, psn qp.PSN) *Packet {
	n.pkt = Packet{
		Route: q.route, SGID: q.sgid, DGID: q.attr.AV.DGID, GIDType: q.sgType, MTU: q.attr.PathMTU,
		Op: op, DestQP: q.attr.DestNum, PSN: psn,
	}
	return &n.pkt
}
