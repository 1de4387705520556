package fabric

import (
	"math/rand/v2"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// flow is the way from a queue pair to its peer: the NIC's route.
type flow struct {
	way
	react reaction // at the sender
}

// way is what each frame needs of a flow: a line of the cache, with the first field of its
// reaction.
type way struct {
	src, dst *Host
	hash     uint64
	peer     *nic.QP // at dst, once it is known
	peerNum  qp.Num

	// answers: it carries answers to READs. Acknowledgements must not overtake those,
	// which would then count as lost, and go in their class from then on.
	answers bool

	nextAvail des.Time // when its limit lets the next frame go
	notifyAt  des.Time // at the receiver: when it may send a CNP again
}

// Host is a machine with one NIC of one port. Its methods belong to the goroutine
// that runs the kernel.
type Host struct {
	f      *Fabric
	id     int
	gid    verbs.GID
	nic    *nic.NIC
	port   *port
	pd     nic.PD
	ready  line // queue pairs that have packets to send, in turn
	bells  line // doorbells on their way to the NIC
	holds  bool // doorbells wait for RingDoorbells
	held   []*nic.QP
	spare  [][]*nic.QP // to hold the next
	rings  des.Table[[]*nic.QP]
	posted Posted
	armed  des.Time // when the NIC runs by itself

	parked des.Table[*nic.QP] // wait for their limit, or their context
	cnpAt  des.Time           // when the NIC may send a CNP again
	sent   uint64             // CNPs
	heard  uint64

	caching     bool // one of the caches is there
	contexts    cache
	wqes        cache
	pages       cache
	pageEntries map[pageOf]*entry // of those that were ever used
	fetches     des.Table[fetch]
	need        nic.Need // of the packet that is looked at
	packetAt    des.Time // when the next packet may be sent
	dma         dma
	stuck       bool // it pauses its link for no reason

	datagrams func(*Host, *Datagram)
	ud        des.Table[udWait]
	udFree    des.Time // when the NIC can begin the next
}

// inflight is more packets of a queue pair than any network here has on its way: what
// bounds a sender is its queue, its window, or its rate.
const inflight = 1 << 20

func newHost(f *Fabric, id int) *Host {
	h := &Host{f: f, id: id, armed: des.Never, gid: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: byte(id >> 16), 14: byte(id >> 8), 15: byte(id)}}
	h.contexts.init(&f.cfg.NIC.Contexts.Cache)
	h.wqes.init(&f.cfg.NIC.WQEs)
	h.pages.init(&f.cfg.NIC.Pages.Cache)
	h.pageEntries = map[pageOf]*entry{}
	h.caching = h.contexts.enabled() || h.wqes.enabled() || h.pages.enabled()
	keys := des.NewStream(f.cfg.Seed, streamNIC, uint64(id), 0)
	h.nic = nic.New(nic.Config{
		Attr: f.attr, Segment: true, Inflight: inflight, Rand: rand.New(&keys), Offer: h.offer, SkipWrites: f.cfg.SkipWrites,
		Ports: []nic.Port{{
			PortAttr: verbs.PortAttr{State: verbs.PortActive, LinkLayer: verbs.LinkEthernet, MaxMTU: qp.MTU4096, ActiveMTU: f.cfg.NIC.MTU, MaxMessage: qp.MaxMessage, GIDs: 1, PKeys: 1},
			GIDs:     []nic.GID{{GIDEntry: verbs.GIDEntry{GID: h.gid, Type: verbs.GIDRoCEv2}}},
		}},
	}, h)
	return h
}

// ID is the host's number on the fabric, from 0.
func (h *Host) ID() int { return h.id }

// GID is the host's address.
func (h *Host) GID() verbs.GID { return h.gid }

// Stats counts what the NIC did.
func (h *Host) Stats() nic.Stats { return h.nic.Stats() }

// PortStats counts what the host's port did.
func (h *Host) PortStats() PortStats { return h.port.stats }

// Downlink counts what the switch's port to the host did: its queue is the one that
// grows when many send to the host.
func (h *Host) Downlink() PortStats { return h.port.peer.stats }

// DownlinkQueue is how many bytes wait in the switch's data queue to the host now.
func (h *Host) DownlinkQueue() int { return h.port.peer.queue[data].bytes }

// Route is part of nic.Fabric.
func (h *Host) Route(_ *nic.NIC, _ verbs.GIDEntry, av *qp.AV) (nic.Route, error) {
	h.f.flows++
	fl := &flow{way: way{src: h, hash: des.Mix(uint64(h.id)<<32 ^ h.f.flows)}}
	if g := av.DGID; g[10] == 0xff && g[11] == 0xff && g[12] == 10 {
		if id := int(g[13])<<16 | int(g[14])<<8 | int(g[15]); id < len(h.f.hosts) {
			fl.dst = h.f.hosts[id]
		}
	}
	return fl, nil
}

// Processed is part of nic.Fabric: a network does not know.
func (h *Host) Processed(nic.Route, nic.Ticket) bool { return true }

// Ring is part of nic.Fabric. The hosts of a fabric are run by one goroutine, so
// nobody reads memory while its owner waits.
func (h *Host) Ring(_ *nic.NIC, q *nic.QP) { q.NIC().Ring(q) }

// Send is part of nic.Fabric: it makes the frame of a packet.
func (h *Host) Send(_ *nic.NIC, p *nic.Packet) nic.Ticket {
	fl := p.Route.(*flow)
	if fl.dst == nil {
		return 0 // nobody has that address
	}
	fr := h.f.newFrame()
	if fl.peer == nil || fl.peerNum != p.DestQP {
		fl.peer, fl.peerNum = fl.dst.nic.QP(p.DestQP), p.DestQP
	}
	fr.pkt, fr.to, fr.hash, fr.kind, fr.class, fr.ecn = *p, fl.dst.port.peer, fl.hash, packetFrame, data, true
	fr.pkt.To = fl.peer
	if p.Op.IsReadResponse() {
		fl.answers = true
	}
	if p.Op.IsAck() && !fl.answers {
		fr.class = control
	}
	fr.size = int32(lowerBytes + p.Op.HeaderBytes() + p.Payload.Len())
	if fr.class == data {
		h.limit(fl, fr)
	}
	h.push(fr)
	return 0
}

// push queues a frame of ours.
func (h *Host) push(fr *frame) {
	h.f.injected++
	h.port.queue[fr.class].push(fr)
	h.port.start()
}

// offer takes a queue pair that has packets to send. It is called within run.
func (h *Host) offer(q *nic.QP) { h.ready.push(q) }

// pull has the NIC send the next packets, as the wire is free.
func (h *Host) pull() {
	q, now := &h.port.queue[data], h.f.k.Now()
	for q.head == nil && !h.ready.empty() {
		if at := h.packetAt; at > now { // it has just begun to send one
			h.port.kickBy(at)
			break
		}
		next := h.ready.pop()
		at := h.heldUntil(next)
		if at <= now && h.caching {
			at = h.ahead(next)
		}
		if at > now {
			h.park(next, at)
			continue
		}
		h.pace(next)
		if more, at := h.turn(next); more && at > now {
			h.park(next, at)
		} else if more {
			h.ready.push(next)
		}
	}
	h.arm()
}

// receive takes a frame that arrived.
func (h *Host) receive(fr *frame) {
	h.f.trace(h.port, "rx", fr)
	h.f.delivered++
	if h.dma.pace > 0 {
		h.buffer(fr)
		return
	}
	h.process(fr)
}

// process takes a frame out of the NIC's buffer.
func (h *Host) process(fr *frame) {
	if fr.kind == packetFrame && h.caching && h.stalls(fr) {
		return
	}
	h.accept(fr)
}

// accept does what a frame asks for.
func (h *Host) accept(fr *frame) {
	switch fr.kind {
	case notifyFrame:
		h.notified(fr.pkt.Route.(*flow))
		h.f.recycle(fr)
		return
	case datagramFrame:
		h.datagram(fr)
		h.f.recycle(fr)
		return
	}
	if fr.marked {
		fr.pkt.Route.(*flow).notify()
	}
	h.nic.Deliver(h.f.k.Now().Duration(), &fr.pkt)
	h.f.recycle(fr)
	h.run()
}

// run lets the NIC do what it has to do.
func (h *Host) run() {
	if h.nic.Run(h.f.k.Now().Duration()) {
		h.f.k.At(h.f.k.Now(), h.f.runKind, int32(h.id), 0)
	}
	h.arm()
	h.port.start()
}

// arm sees to it that the NIC runs at its deadline.
func (h *Host) arm() {
	if d, ok := h.nic.Deadline(); ok && des.Of(d) < h.armed {
		h.armed = des.Of(d)
		h.f.k.At(h.armed, h.f.wakeKind, int32(h.id), 0)
	}
}

// wake is a run that was planned, unless it is a plan that an earlier one replaced.
func (h *Host) wake() {
	if h.armed > h.f.k.Now() {
		return
	}
	h.armed = des.Never
	h.run()
}

// doorbell tells the NIC of posted requests, after the time that this takes.
func (h *Host) doorbell(q *nic.QP) {
	if h.holds {
		h.held = append(h.held, q)
		return
	}
	h.bells.push(q)
	h.f.k.At(h.f.k.Now()+h.f.cfg.NIC.TxLatency, h.f.bellKind, int32(h.id), 0)
}

// Posted counts what was posted to the queue pairs of a host.
type Posted struct{ Sends, Receives, Doorbells int }

// Posted gives the counters.
func (h *Host) Posted() Posted { return h.posted }

// HoldDoorbells keeps doorbells from the NIC until RingDoorbells, for a processor
// whose time to post is known only afterwards.
func (h *Host) HoldDoorbells() { h.holds = true }

// RingDoorbells has the NIC told of what was posted since HoldDoorbells, after a time.
func (h *Host) RingDoorbells(after des.Time) {
	h.holds = false
	if len(h.held) == 0 {
		return
	}
	h.f.k.At(h.f.k.Now()+after+h.f.cfg.NIC.TxLatency, h.f.ringKind, int32(h.id), h.rings.Put(h.held))
	h.held = nil
	if n := len(h.spare); n > 0 {
		h.held, h.spare = h.spare[n-1], h.spare[:n-1]
	}
}

// rang is what became of RingDoorbells.
func (h *Host) rang(i int32) {
	qps := h.rings.Take(i)
	for i, q := range qps {
		h.nic.Ring(q)
		qps[i] = nil
	}
	h.spare = append(h.spare, qps[:0])
	h.run()
}

func (h *Host) rung() {
	h.nic.Ring(h.bells.pop())
	h.run()
}

// SetDown cuts the host's link, both ways, or mends it. What is on the wire is lost.
func (h *Host) SetDown(down bool) {
	h.port.setLinkDown(down)
}

// Crash ends the host's NIC: it neither sends nor answers any more. Frames that it
// queued are still sent.
func (h *Host) Crash() { h.nic.Lose() }

// SetLoss changes the share of frames that the host's link loses, both ways.
func (h *Host) SetLoss(p float64) {
	h.port.cfg.Loss = p
	h.port.peer.cfg.Loss = p
}
