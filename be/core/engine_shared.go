package core

import (
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
)

// settleShared is how long an engine with shared receives waits before it closes a
// queue pair that has nothing posted: receives that it has taken may be on their way
// to the completion queue.
const settleShared = time.Millisecond

// completeShared takes a completed receive of the shared queue.
func (e *Engine) completeShared(now time.Duration, c *cq.Completion) {
	p := e.shared
	entry, newest, ok := p.take(uint32(c.ID))
	if !ok {
		e.Fail(now, errUnknownCompletion)
		return
	}
	e.newest = newest
	if p.arrived(&e.share) {
		e.received(now, entry, c)
	} else {
		e.stats.ProtocolErrors++
		e.Fail(now, protocolError(0, "credits used", 1, "0: all that were granted are used"))
	}
	p.recycle(entry)
	if e.state == engineUp {
		e.regrant(now)
	} else {
		p.post() // a peer that took more than its own left too few for the others
	}
}

// regrant grants receives of the shared queue, if half of what was granted is used.
func (e *Engine) regrant(now time.Duration) {
	p, s := e.shared, &e.share
	if e.state != engineUp || !s.due() {
		return
	}
	e.unpackAll() // what has come before what may
	p.adapt(s)
	if len(p.free) >= p.chunk || p.shares.posted-p.out < s.size-s.out {
		if err := p.post(); err != nil {
			e.Fail(now, err)
			return
		}
		e.stats.RecvPosts++
	}
	if n := p.grant(s); n > 0 {
		e.credits.Posted(n)
	}
	if s.due() { // there was no memory for more
		e.retryBy(now + MemoryRetry)
	}
	p.granted(now, s)
}

// onLent takes RECALL and RETURN.
func (e *Engine) onLent(h *wire.Header) error {
	switch {
	case !e.cfg.Lend:
		return protocolError(h.Type, "type", uint64(h.Type), "one that was agreed on")
	case h.Type == wire.Recall:
		e.control(control{typ: wire.Return, seq: max(h.Sequence, 2*reserve)})
	case e.shared == nil || h.Sequence > 1<<30 || !e.shared.returned(&e.share, int(h.Sequence)):
		return protocolError(h.Type, "credits", uint64(h.Sequence), "at most those that were granted and not used")
	default:
		e.stats.Returned += uint64(h.Sequence)
		e.shared.resize(&e.share, e.shared.shares.least)
	}
	return nil
}

// receiving is the number of receives that are posted for this engine alone and not
// completed.
func (e *Engine) receiving() int { return e.recv.outstanding() }

// leaveShared takes the engine's share back, after its queue pair was closed. One that
// left in good order was between two messages.
func (e *Engine) leaveShared() {
	if e.shared != nil {
		e.shared.exit(e, e.err != nil && e.err != ErrClosed && e.err != ErrPeerClosed)
	}
}
