package fabric

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// rate is that of the host's port in bit/s.
func (h *Host) rate() int64 { return int64(h.port.cfg.Gbps) * 1e9 }

// limit counts a frame that is sent now, and says when the flow may send the next.
func (h *Host) limit(fl *flow, fr *frame) {
	c := &h.f.cfg.NIC.DCQCN
	if !fl.react.active {
		return
	}
	now, n := h.f.k.Now(), int(fr.size)+gapBytes
	fl.react.advance(c, now)
	fl.nextAvail = now + fl.react.gap(n)
	fl.react.sent(c, int64(n))
}

// heldUntil is when the limit of a queue pair lets it send.
func (h *Host) heldUntil(q *nic.QP) des.Time {
	if fl, ok := q.Route().(*flow); ok {
		return fl.nextAvail
	}
	return 0
}

// park keeps a queue pair out of its turn for a time.
func (h *Host) park(q *nic.QP, until des.Time) {
	h.f.k.At(until, h.f.unparkKind, int32(h.id), h.parked.Put(q))
}

func (h *Host) unpark(i int32) {
	h.ready.push(h.parked.Take(i))
	h.port.start()
}

// notify tells the sender of a flow that a marked packet came, unless it was told
// within the interval. Marks that come too soon are forgotten: a notification at the
// end of the interval would be about a queue that is gone, and with it the mean
// queue of 16 flows is a third of what the fluid model says.
func (fl *flow) notify() {
	h := fl.dst
	c := &h.f.cfg.NIC.DCQCN
	now := h.f.k.Now()
	if !c.enabled() || now < fl.notifyAt || now < h.cnpAt {
		return
	}
	fl.notifyAt, h.cnpAt = now+c.CNPInterval, now+h.f.cfg.NIC.CNPGap
	fr := h.f.newFrame()
	fr.kind, fr.class, fr.size, fr.pkt.Route, fr.to, fr.hash = notifyFrame, control, cnpBytes, fl, fl.src.port.peer, fl.hash^1
	h.sent++
	h.push(fr)
}

// notified takes a notification about a flow of ours.
func (h *Host) notified(fl *flow) {
	h.heard++
	if c := &h.f.cfg.NIC.DCQCN; c.enabled() {
		fl.react.notified(c, h.f.k.Now(), h.rate())
		if h.f.naive {
			h.f.ticks(fl)
		}
	}
}

// Notifications is how many CNPs the host sent, and how many came.
func (h *Host) Notifications() (sent, heard uint64) { return h.sent, h.heard }
