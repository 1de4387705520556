package core

import (
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/prefetch"
)

// Prefetch has the cache get what Complete and then Flush will need for a completion: the
// engine, then what that refers to, then the socket or the message. It changes nothing.
func (e *Engine) Prefetch(step int, c *cq.Completion) {
	if step == 0 {
		prefetch.Object(e)
		return
	}
	recv := uint32(c.ID>>32)&e.recvBit != 0
	switch {
	case step == 1:
		e.prefetchBulk()
		prefetch.Object(&e.chain.scratch.slots)
		prefetch.Object(&e.sched.asks)
		prefetch.Object(&e.sched.wheels[e.sched.last])
		switch {
		case !recv:
			prefetch.Object(e.chain.oldest)
		case e.shared == nil:
			prefetch.Object(&e.recv.bufs[e.recv.next])
			prefetch.Object(&e.recv.header(int(e.recv.next))[0])
			prefetch.Object(e.recent)
		}
	case recv && e.recent != nil:
		prefetch.Object(e.recent.socketRest)
	case !recv && e.chain.oldest != nil:
		prefetch.Object(e.chain.oldest.msg)
	}
}

// prefetchBulk gets what large messages need of an engine.
func (e *Engine) prefetchBulk() {
	prefetch.Object(&e.bulk)
	prefetch.Object(&e.cfg.Fragment)
	prefetch.Object(&e.stats.Rendezvous)
}
