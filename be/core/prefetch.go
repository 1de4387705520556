package core

import (
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/prefetch"
)

// Prefetch has the cache get what Complete will need for a completion: the engine, then
// what that refers to, then the socket or the message. It changes nothing.
func (e *Engine) Prefetch(step int, c *cq.Completion) {
	switch recv := uint32(c.ID>>32)&e.recvBit != 0; {
	case step == 0:
		prefetch.Object(e)
	case step == 1 && recv && e.shared == nil:
		prefetch.Object(&e.recv.bufs[e.recv.next])
		prefetch.Object(&e.recv.header(int(e.recv.next))[0])
		prefetch.Object(e.recent)
	case step == 1 && !recv:
		prefetch.Object(e.chain.oldest)
	case step == 2 && !recv && e.chain.oldest != nil:
		prefetch.Object(e.chain.oldest.msg)
	}
}
