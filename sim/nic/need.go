package nic

import (
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// WorkQueue is one of the two queues of a queue pair.
type WorkQueue uint8

// The queues.
const (
	NoQueue WorkQueue = iota
	SendQueue
	RecvQueue
)

// Piece is a part of the memory of a region.
type Piece struct {
	Region   *Region
	Off, Len uint64
}

// Need is what a packet is handled with: a driver that models a NIC of which most is in
// the host's memory knows by it what has to be fetched.
type Need struct {
	Seq    uint64    // tells the packet from others of its queue pair that come before or after it
	Queue  WorkQueue // of the request that is read for the packet, NoQueue if none is
	Index  uint32    // of the request, in the order of posting
	Pieces []Piece   // memory that the NIC reads or writes; the array is used again
}

func (n *Need) reset(seq uint64) { *n = Need{Seq: seq, Pieces: n.Pieces[:0]} }

// NextIndex is the index of the send request that will be posted next.
func (q *QP) NextIndex() uint32 { return uint32(q.sq.posted()) }

// NextOut sets what the next packet that Transmit would send needs.
func (q *QP) NextOut(n *Need) {
	n.reset(0)
	if len(q.pending) > 0 {
		a := &q.pending[0]
		n.Seq = 1<<63 | uint64(a.psn.Add(a.sent))
		if !a.atomic {
			off := a.sent * uint32(q.mtu)
			n.add(a.region, a.addr+uint64(off), min(uint32(q.mtu), a.length-off))
		}
		return
	}
	if q.cur == q.sq.posted() {
		return
	}
	s, w := &q.sq, q.sq.at(q.cur)
	n.Seq, n.Queue, n.Index = uint64(q.cur)<<24|uint64(q.curPkt), SendQueue, uint32(q.cur)
	if w.op != qp.Read && !w.op.IsAtomic() {
		n.list(q.nic, s.listOf(q.cur), q.curPkt*uint32(q.mtu), uint32(q.mtu))
	}
}

// NextIn sets what a packet that arrived needs, if it is the one that comes next.
func (q *QP) NextIn(p *Packet, n *Need) {
	n.reset(uint64(p.PSN))
	f, size := p.Op.flags(), uint32(p.Payload.Len())
	if f&isAtomic != 0 {
		size = 8
	}
	switch {
	case f&isResponse != 0:
		if i, k, ok := q.requestOf(p.PSN); ok && f&(isReadResp|isAtomic) != 0 {
			n.Queue, n.Index = SendQueue, uint32(i)
			n.list(q.nic, q.sq.listOf(i), k*uint32(q.mtu), size)
		}
		return
	case p.PSN != q.recvPSN:
		return // it is not taken
	case f&(isSend|hasImm) != 0 && q.rq.una != q.rq.posted():
		n.Queue, n.Index = RecvQueue, uint32(q.rq.una)
	}
	got, addr, key := q.got, q.addr, q.rkey
	if f&starts != 0 {
		got, addr, key = 0, p.Addr, p.RKey
	}
	switch {
	case f&isSend != 0 && n.Queue == RecvQueue:
		n.list(q.nic, q.rq.segments(q.rq.una)[:q.rq.at(q.rq.una).nsge], uint32(got), size)
	case f&isWrite != 0:
		n.add(q.nic.remote(q, key, addr+got, uint64(size), mr.RemoteWrite), addr+got, size)
	case f&isAtomic != 0:
		n.add(q.nic.remote(q, key, addr, uint64(size), mr.RemoteAtomic), addr, size)
	}
}

// add takes bytes of a region, which is nil if the peer or the request may not use it.
func (n *Need) add(r *Region, addr uint64, size uint32) {
	if r != nil && size > 0 {
		n.Pieces = append(n.Pieces, Piece{r, addr - r.Addr, uint64(size)})
	}
}

// list takes size bytes of a list of segments, or what it has of them, from byte off on.
func (n *Need) list(nic *NIC, sges []qp.SGE, off, size uint32) {
	for _, g := range sges {
		if off >= g.Length {
			off -= g.Length
			continue
		}
		k := min(size, g.Length-off)
		if r := nic.keys.get(g.LKey); r != nil && r.Contains(g.Addr, uint64(g.Length)) {
			n.add(r, g.Addr+uint64(off), k)
		}
		off, size = 0, size-k
	}
}
