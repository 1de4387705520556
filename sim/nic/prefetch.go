package nic

import (
	"github.com/byteexpress/byteexpress/internal/prefetch"
	"github.com/byteexpress/byteexpress/mr"
)

// Prefetch has the cache get what a packet that will be delivered needs, of which its
// headers are there: its queue pair, then its request there, and its payload, then that
// request's memory and the region of that. p.To is set.
func (n *NIC) Prefetch(step int, p *Packet) {
	q, f := p.To, p.Op.flags()
	takesRecv := f&(isSend|hasImm) != 0
	switch {
	case step == 0:
		prefetch.Part(q, 0, busyBytes)
		if takesRecv {
			prefetch.Part(q, recvAt, recvBytes)
			prefetch.Object(&p.Payload)
		}
	case step == 1 && f&isResponse != 0:
		prefetch.Object(q.sq.at(q.sq.una))
		q.sendCQ.prefetch()
	case step == 1 && takesRecv:
		prefetch.Object(q.rq.at(q.rq.una))
		prefetch.Object(&q.rq.segments(q.rq.una)[0])
		q.recvCQ.prefetch()
		if f&isSend != 0 {
			p.Payload.prefetch()
		}
	case step == 2 && f&isResponse != 0:
		prefetch.Of(q.sendCQ.Owner, ownerBytes)
	case !takesRecv:
	case step == 2:
		prefetch.Of(q.recvCQ.Owner, ownerBytes)
		for _, g := range q.rq.segments(q.rq.una) {
			prefetch.Memory(g.Addr, uint64(min(g.Length, 32)))
			n.keys.prefetch(g.LKey)
		}
	default:
		for _, g := range q.rq.segments(q.rq.una) {
			prefetch.Object(n.keys.get(g.LKey))
		}
	}
}

// ownerBytes is what the owner of a CQ needs at first to take a completion.
const ownerBytes = 128

// prefetch gets what a completion needs.
func (c *CQ) prefetch() { prefetch.Part(c, fillAt, fillBytes) }

// prefetch gets the first bytes of the payload, and what holds them.
func (p *Payload) prefetch() {
	prefetch.Object(p.lease)
	prefetch.Object(p.one.region)
	if b := p.one.b; len(b) > 0 {
		prefetch.Object(&b[p.off%len(b)])
	}
}

// prefetch gets the place of a key.
func (t *keyTable) prefetch(k mr.LKey) {
	if i := (uint32(k) ^ t.mask) >> tagBits; int64(i) < int64(len(t.slots)) {
		prefetch.Object(&t.slots[i])
	}
}

// Prefetch has the cache get what the queue pair needs to send: itself, then its next
// request, then the region of that.
func (q *QP) Prefetch(step int) {
	switch step {
	case 0:
		prefetch.Part(q, 0, sendAt+sendBytes)
	case 1:
		prefetch.Object(q.sq.at(q.cur))
		prefetch.Object(&q.sq.segments(q.cur)[0])
		prefetch.Object(&q.sq.resolved(q.cur)[0])
	case 2:
		q.nic.keys.prefetch(q.sq.segments(q.cur)[0].LKey)
	default:
		prefetch.Object(q.nic.keys.get(q.sq.segments(q.cur)[0].LKey))
	}
}

// PrefetchPost has the cache get what PostSend needs: the queue pair, then the place of the
// next request.
func (q *QP) PrefetchPost(step int) {
	if step == 0 {
		prefetch.Part(q, softAt, softBytes)
		prefetch.Part(q, sendAt, sendBytes)
		prefetch.Part(q, capsAt, capsBytes)
		return
	}
	next := q.sq.posted()
	prefetch.Object(q.sq.at(next))
	prefetch.Object(&q.sq.segments(next)[0])
}
