package fabric

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// DefaultPageBytes is the usual page of registered memory; a huge one has 2 MiB.
const DefaultPageBytes = 4 << 10

// Pages is a NIC's cache of the addresses of registered memory's pages (MTT: memory
// translation table): each packet needs those of the pages that it is read from or
// written to. A region begins with a page.
type Pages struct {
	Cache
	PageBytes int // a power of two; 0: DefaultPageBytes
}

// supply is what the caches of work requests and pages know of a queue pair; nil without
// them.
type supply struct {
	wqes    [2][]wqe // send and receive queue
	out, in step
}

// wqe is a place in a queue, and which request the NIC knows of it.
type wqe struct {
	entry
	index uint32
}

// step is how far the next packet, of one direction, is with getting what it needs.
type step struct {
	seq   uint64
	stage uint8 // 0: nothing; 1: its request; 2: and the pages of the memory that this names
	at    des.Time
}

// pageOf is a page of a region.
type pageOf struct {
	region *nic.Region
	number uint64
}

func (h *Host) newSupply(q *QP) {
	if h.wqes.enabled() || h.pages.enabled() {
		caps := q.Caps()
		q.supply = &supply{wqes: [2][]wqe{make([]wqe, caps.SendWR), make([]wqe, caps.RecvWR)}}
	}
}

// wqe is the place of a request in its queue.
func (s *supply) wqe(queue nic.WorkQueue, index uint32) *wqe {
	l := s.wqes[queue-nic.SendQueue]
	return &l[int(index)%len(l)]
}

// carried puts a request that a doorbell carried into the cache.
func (h *Host) carried(s *supply, index uint32) {
	w := s.wqe(nic.SendQueue, index)
	h.wqes.forget(&w.entry)
	h.wqes.arrived(&w.entry)
	w.index = index
}

// request uses a work request and says when it is there.
func (h *Host) request(s *supply, n *nic.Need) des.Time {
	w := s.wqe(n.Queue, n.Index)
	if w.index != n.Index {
		h.wqes.forget(&w.entry)
		w.index = n.Index
	}
	return h.use(&h.wqes, &w.entry, h.wqes.cfg.Miss, nil)
}

// translations uses those of all pages of some pieces of memory and says when the last
// is there.
func (h *Host) translations(pieces []nic.Piece) (at des.Time) {
	size := uint64(h.f.cfg.NIC.Pages.PageBytes)
	for _, p := range pieces {
		for i := p.Off / size; i <= (p.Off+p.Len-1)/size; i++ {
			x := h.pageEntries[pageOf{p.Region, i}]
			if x == nil {
				x = new(entry)
				h.pageEntries[pageOf{p.Region, i}] = x
			}
			at = max(at, h.use(&h.pages, x, h.pages.cfg.Miss, nil))
		}
	}
	return at
}

// obtain gets what a packet needs, its request before the pages that this names. It says
// when to come again for the same packet; not after now: all of it was there, which the
// NIC keeps until the packet is handled.
func (h *Host) obtain(s *supply, st *step, n *nic.Need) des.Time {
	now := h.f.k.Now()
	if st.seq != n.Seq || st.stage == 0 {
		*st = step{seq: n.Seq, stage: 1}
		if n.Queue != nic.NoQueue && h.wqes.enabled() {
			st.at = h.request(s, n)
		}
	}
	if st.stage == 1 && st.at <= now {
		st.stage = 2
		if h.pages.enabled() {
			st.at = h.translations(n.Pieces)
		}
	}
	return st.at
}

// supplied gets what the next packet of a queue pair that wants to send needs and says
// when to come again.
func (h *Host) supplied(q *QP) des.Time {
	q.NextOut(&h.need)
	return h.obtain(q.supply, &q.supply.out, &h.need)
}

// received gets what a packet that arrived needs, and reports whether all of it is there.
// Otherwise the queue pair goes on when it is.
func (h *Host) received(q *QP, p *nic.Packet) bool {
	s := q.supply
	if s == nil {
		return true
	}
	was := s.in
	q.NextIn(p, &h.need)
	if at := h.obtain(s, &s.in, &h.need); at > h.f.k.Now() {
		if s.in != was {
			h.await(at, fetch{q: q})
		}
		return false
	}
	s.in = step{}
	return true
}

// turn has a queue pair send what it may in its turn, a packet at a time as each has
// what it needs. It says whether there is more, and when to go on with that.
func (h *Host) turn(q *nic.QP) (more bool, at des.Time) {
	now := h.f.k.Now()
	if !h.caching || q.Owner.(*QP).supply == nil {
		return h.nic.Transmit(now.Duration(), q, h.f.cfg.NIC.Quantum), now
	}
	own := q.Owner.(*QP)
	for range h.f.cfg.NIC.Quantum {
		more = h.nic.Transmit(now.Duration(), q, 1)
		if own.supply.out = (step{}); !more {
			return false, now
		}
		if at = h.supplied(own); at > now {
			break
		}
	}
	return true, at
}
