package nic

import (
	"time"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/sim/dma"
)

// heldWrites are WRITEs of one queue pair that arrived together and are not copied yet.
// A NIC that takes several packets at a time copies them at once: fragments of one message
// mostly follow each other both in the sender's memory and in ours, and the copying of
// others begins better when it is known ahead. The sender's memory is held until then, and
// nothing is acknowledged or completed.
type heldWrites struct {
	q     *QP // ours
	lease *lease
	runs  []writeRun // in order; none: nothing is held
}

// writeRun is a run of packets whose bytes follow each other.
type writeRun struct {
	from, to *Region
	src, dst uint64 // where they begin
	n        uint64 // bytes
}

// maxRuns is how many are held at most: more than a window of be has fragments.
const maxRuns = 8

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
	if h.q != q || h.lease != p.lease || len(h.runs) == maxRuns {
		n.settle()
	}
	r := writeRun{from: from, to: to, src: mr.Addr(p.one.b) + uint64(p.off), dst: addr, n: size}
	if !h.extend(&r) && !n.beginRun(q, p.lease, r) {
		n.stats.RevokedPayloads++
		return false
	}
	n.stats.BytesReceived += size
	return true
}

// extend adds r to the last run, if it goes on there.
func (h *heldWrites) extend(r *writeRun) bool {
	if len(h.runs) == 0 {
		return false
	}
	last := &h.runs[len(h.runs)-1]
	if last.from != r.from || last.to != r.to || last.src+last.n != r.src || last.dst+last.n != r.dst {
		return false
	}
	last.n += r.n
	return true
}

// beginRun holds a run that goes on with none. It takes the sender's memory for reading
// until settle; false: the sender took it back.
func (n *NIC) beginRun(q *QP, l *lease, r writeRun) bool {
	h := &n.writes
	k := len(h.runs)
	if k == 0 && !l.acquire() {
		return false
	}
	h.q, h.lease = q, l
	if (k == 0 || h.runs[k-1].from != r.from) && !r.from.acquire() {
		n.settle()
		return false
	}
	h.runs = append(h.runs, r)
	return true
}

// settle copies what is held. It comes before anything by which the peer or the
// application may learn that it was placed, or that looks at the memory.
func (n *NIC) settle() {
	h := &n.writes
	if h.lease == nil {
		return
	}
	for i := range h.runs {
		if i+1 < len(h.runs) {
			next := &h.runs[i+1]
			dma.Expect(next.from.slice(next.src, next.n))
		}
		r := &h.runs[i]
		n.dma.Copy(r.to.slice(r.dst, r.n), r.from.slice(r.src, r.n))
	}
	// After all of it: a locked instruction waits until what was written is in memory.
	for i := range h.runs {
		if r := &h.runs[i]; i+1 == len(h.runs) || r.from != h.runs[i+1].from {
			r.from.release()
		}
	}
	if h.lease.release() {
		n.fabric.Ring(n, h.lease.q)
	}
	clear(h.runs)
	h.q, h.lease, h.runs = nil, nil, h.runs[:0]
}
