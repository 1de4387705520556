package nic

import "github.com/byteexpress/byteexpress/internal/prefetch"

// Prefetch has the cache get what a packet that will be delivered needs: its queue pair,
// then its request there, then that one's memory.
func (n *NIC) Prefetch(step int, p *Packet) {
	q := n.qps.like(p.DestQP)
	if q == nil {
		return
	}
	f := p.Op.flags()
	switch {
	case step == 0:
		prefetch.Object(&q.busy)
		prefetch.Object(&q.sq.ring)
		if f&(isSend|hasImm) != 0 {
			prefetch.Object(&q.rq)
		}
	case f&isResponse != 0:
		if step == 1 {
			prefetch.Object(q.sq.at(q.sq.una))
		}
	case f&(isSend|hasImm) == 0:
	case step == 1:
		prefetch.Object(q.rq.at(q.rq.una))
		prefetch.Object(&q.rq.segments(q.rq.una)[0])
	default:
		for _, g := range q.rq.segments(q.rq.una) {
			prefetch.Memory(g.Addr, uint64(min(g.Length, 32)))
		}
	}
}

// Prefetch has the cache get what the queue pair needs to send: itself, then its next
// request.
func (q *QP) Prefetch(step int) {
	if step == 0 {
		prefetch.Object(&q.busy)
		prefetch.Object(&q.sq)
		return
	}
	prefetch.Object(q.sq.at(q.cur))
	prefetch.Object(&q.sq.segments(q.cur)[0])
	prefetch.Object(&q.sq.resolved(q.cur)[0])
}
