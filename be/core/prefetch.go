package core

import (
	"github.com/byteexpress/byteexpress/be/internal/wire"
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
	e.prefetchSolo(step)
	switch recv := uint32(c.ID>>32)&e.recvBit != 0; {
	case step == 1 && !recv:
		prefetch.Object(e.chain.oldest)
		prefetch.Part(e.engineRest, 0, writeBytes)
		prefetch.Part(e.engineRest, cfgAt, cfgBytes)
		prefetch.Part(e.engineRest, statsAt, statsBytes)
	case !recv:
		if s := e.chain.oldest; s != nil {
			prefetch.Object(s.msg)
		}
	case e.shared != nil:
	case step == 1:
		prefetch.Object(&e.recv.bufs[e.recv.next])
		prefetch.Object(&e.recv.header(int(e.recv.next))[0])
		prefetch.Object(e.recent)
	case isLarge(c, e.recv.header(int(e.recv.next))):
		e.prefetchLarge()
		if e.recent != nil {
			prefetch.Object(e.recent.socketRest)
		}
	}
}

// PrefetchFlush is Prefetch for a Flush without a completion.
func (e *Engine) PrefetchFlush(step int) {
	if step == 0 {
		prefetch.Object(e)
		return
	}
	e.prefetchSolo(step)
}

// prefetchSolo gets the socket that sends next, if it is alone, and its message.
func (e *Engine) prefetchSolo(step int) {
	s := e.sched.solo
	switch {
	case step == 1:
		prefetch.Object(s)
	case s == nil:
	case step == 2:
		prefetch.Part(s.socketRest, 0, restBytes)
		prefetch.Object(s.queue.head)
	default:
		prefetch.Object(s.writing.head)
	}
}

// isLarge reports whether a completed receive, of a header, is about a large message.
func isLarge(c *cq.Completion, header []byte) bool {
	t := wire.Type(header[0])
	return c.Opcode != cq.Recv || t == wire.RTS || t == wire.CTS
}

// prefetchLarge gets what large messages need of an engine.
func (e *Engine) prefetchLarge() {
	prefetch.Part(e.engineRest, 0, cfgAt+cfgBytes)
	prefetch.Part(e.engineRest, statsAt, statsBytes)
}

// PrefetchTaken has the cache get what Taken and Held need: of a socket that is there, and of
// its engine.
func (s *Socket) PrefetchTaken() { prefetch.Object(s.socketRest) }

// PrefetchTaken is the engine's part: it is there.
func (e *Engine) PrefetchTaken() {
	prefetch.Part(e.engineRest, heldAt, heldBytes)
	prefetch.Part(e.engineRest, packedAt, heldBytes)
}
