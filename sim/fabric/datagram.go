package fabric

import (
	"cmp"

	"github.com/byteexpress/byteexpress/sim/des"
)

// Datagram is a frame that no queue pair sends: a segment of package tcp, or an
// unreliable datagram.
type Datagram struct {
	Flow     uint64 // those of one number take one way
	Bytes    int    // of the frame in a buffer: Ethernet's header and checksum too, preamble and gap not
	Lossless bool   // in the class of RDMA, which PFC protects; else in the one that switches drop
	ECN      bool   // switches may mark it
	Marked   bool   // one did
	Body     any    // the protocol's
}

// SendDatagram queues a datagram at the host's port. It is lost if the network
// drops it; nobody is told.
func (h *Host) SendDatagram(to *Host, d *Datagram) {
	fr := h.f.newFrame()
	fr.kind, fr.class, fr.from, fr.to, fr.hash, fr.size, fr.ecn, fr.pkt.Route = datagramFrame, lossy, int32(h.id), to.port.peer, des.Mix(d.Flow), int32(d.Bytes), d.ECN, d.Body
	if d.Lossless {
		fr.class = data
	}
	h.push(fr)
}

// HandleDatagrams has f called for every datagram that arrives, from within the
// kernel's events. The datagram is the fabric's again on return.
func (h *Host) HandleDatagrams(f func(from *Host, d *Datagram)) { h.datagrams = f }

func (h *Host) datagram(fr *frame) {
	if h.datagrams == nil {
		return
	}
	d := &h.f.arrived
	*d = Datagram{Bytes: int(fr.size), Lossless: fr.class == data, ECN: fr.ecn, Marked: fr.marked, Body: fr.pkt.Route}
	h.datagrams(h.f.hosts[fr.from], d)
}

// Unloaded is how long a datagram of so many bytes takes to a host if nothing else is on its
// way, 0 if there is none.
func (h *Host) Unloaded(to *Host, bytes int) (d des.Time) {
	fr := frame{hop: hop{to: to.port.peer}}
	for p := h.port; ; {
		d += p.pace.of(bytes+gapBytes) + p.delay
		s := p.peer.sw
		if s == nil {
			return d
		}
		d += h.f.cfg.Switch.Latency
		if p = s.next(&fr); p == nil {
			return 0
		}
	}
}

// DownlinkDatagrams is how many bytes wait in the switch's lossy queue to the host.
func (h *Host) DownlinkDatagrams() int { return h.port.peer.queue[lossy].bytes }

// UD is what a NIC needs for an unreliable datagram before it can begin the next.
type UD struct {
	Message des.Time // 0: DefaultUDMessage
	Byte    des.Time // of payload; 0: DefaultUDByte
}

// Defaults of [UD]: they give the rates of table 2 of the ByteExpress paper, which
// are far below those of reliable connections at 100 and 200 Gb/s.
const (
	DefaultUDMessage = 131 * des.Nanosecond
	DefaultUDByte    = 38 * des.Picosecond // 0.0378 ns
)

func (u *UD) setDefaults() {
	u.Message = cmp.Or(u.Message, DefaultUDMessage)
	u.Byte = cmp.Or(u.Byte, DefaultUDByte)
}

// udBytes are the headers of an unreliable datagram: the transport's, which names
// queue and key (IBTA 1.4, 9.3), and what is below it.
const udBytes = lowerBytes + 12 + 8

// udWait is a datagram on its way to the wire.
type udWait struct {
	to   *Host
	size int
	body any
}

// SendUD sends an unreliable datagram of up to an MTU of payload in the lossless
// class, as soon as the NIC comes to it. Handlers of datagrams see it.
func (h *Host) SendUD(to *Host, payload int, body any) {
	c := &h.f.cfg.NIC.UD
	now := h.f.k.Now()
	h.udFree = max(h.udFree, now+h.f.cfg.NIC.TxLatency-c.Message) + c.Message + des.Time(payload)*c.Byte
	h.f.k.At(h.udFree, h.f.udKind, int32(h.id), h.ud.Put(udWait{to, payload, body}))
}

func (h *Host) udReady(i int32) {
	w := h.ud.Take(i)
	h.SendDatagram(w.to, &Datagram{Flow: uint64(h.id)<<32 | uint64(w.to.id), Bytes: udBytes + w.size, Lossless: true, ECN: true, Body: w.body})
}
