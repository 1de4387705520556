package nic

import (
	"time"

	"github.com/byteexpress/byteexpress/mr"
)

// writeRun is a run of packets of WRITEs of one queue pair whose bytes follow each
// other both in the sender's memory and in ours. A NIC that takes several packets at
// a time copies them at once, as fragments of one message mostly are such a run. The
// sender's memory is held until then, and nothing is acknowledged or completed.
type writeRun struct {
	q        *QP // ours; nil: nothing is held
	lease    *lease
	from, to *Region
	src, dst uint64 // where they begin
	n        uint64 // bytes
}

// DeliverAll takes packets that arrived together, in order, as Deliver takes each.
func (n *NIC) DeliverAll(now time.Duration, packets []Packet) {
	n.now = now
	for i := range packets {
		n.deliver(&packets[i])
	}
	n.settle()
}

// placeWrite places the payload of a WRITE of q at addr, at once or when the run that it is
// part of ends. It reports false if the sender took the memory back.
func (n *NIC) placeWrite(q *QP, p *Payload, to *Region, addr uint64) bool {
	h, from, size := &n.writes, p.one.region, uint64(p.n)
	if p.lease == nil || p.many != nil || from == nil || size == 0 {
		n.settle()
		var one [1]segment
		if to != nil {
			one[0].b = to.slice(addr, size)
		}
		return n.place(&scatter{segs: one[:]}, *p)
	}
	src := mr.Addr(p.one.b) + uint64(p.off)
	if h.q != q || h.lease != p.lease || h.from != from || h.to != to || h.src+h.n != src || h.dst+h.n != addr {
		n.settle()
		if !n.borrow(p.lease, from) {
			n.stats.RevokedPayloads++
			return false
		}
		*h = writeRun{q: q, lease: p.lease, from: from, to: to, src: src, dst: addr}
	}
	h.n += size
	n.stats.BytesReceived += size
	return true
}

// borrow takes a sender's memory for reading until giveBack.
func (n *NIC) borrow(l *lease, r *Region) bool {
	if !l.acquire() {
		return false
	}
	if r.acquire() {
		return true
	}
	if l.release() {
		n.fabric.Ring(n, l.q)
	}
	return false
}

// settle copies what is held. It comes before anything by which the peer or the
// application may learn that it was placed, or that looks at the memory.
func (n *NIC) settle() {
	h := &n.writes
	if h.q == nil {
		return
	}
	n.dma.Copy(h.to.slice(h.dst, h.n), h.from.slice(h.src, h.n))
	h.from.release()
	if h.lease.release() {
		n.fabric.Ring(n, h.lease.q)
	}
	*h = writeRun{}
}
