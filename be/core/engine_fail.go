package core

import (
	"errors"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// ErrTooLarge says that a message is longer than both sides take.
var ErrTooLarge = errors.New("message too large")

var errUnknownCompletion = errors.New("the device completed a request that was not posted")

// Fail ends the engine: callers hear the cause at once, the queue pair goes to
// ERR, and when every posted request has completed (or the drain time is over)
// the memory is given back. Later calls change nothing.
func (e *Engine) Fail(now time.Duration, cause error) {
	if e.state >= engineFailed {
		return
	}
	if e.gone {
		cause = e.flushErr // what follows from that is no cause
	}
	e.state, e.err = engineFailed, cause
	e.leaveBy, e.retryAt, e.flushBy = Never, Never, Never
	e.chain.scratch.Told = true
	e.h.Failed(e, cause)
	e.drainBy = now + e.cfg.DrainTimeout
	if err := e.qp.Modify(&qp.Attr{State: qp.Err}, qp.MaskState); err != nil {
		e.drainBy = now // the device does not answer: only closing is left
	}
	e.setAlarm()
	e.stall(now, 0)
	e.cap.leave(e)
	for n, s := e.chain.next-e.chain.first, e.chain.oldest; n > 0; n, s = n-1, s.next {
		for m := s.msg; m != nil; {
			next := m.packed()
			e.endOutgoing(m, cause)
			m = next
		}
	}
	for e.flushed.head != nil {
		e.endOutgoing(e.flushed.head, cause)
	}
	for s := e.chain.abandon(); s != nil; s = e.chain.abandon() {
		e.freeSlot(s, false)
	}
	e.chain.flushed(0)
	for _, t := range [][]*Socket{e.table.own, e.table.peer} {
		for _, s := range t {
			if s != nil {
				e.failSocket(s, cause)
			}
		}
	}
	if e.chain.InFlight() == 0 && e.receiving() == 0 {
		e.drainBy = now // nothing to wait for; Tick ends it
		if e.shared != nil {
			e.drainBy += settleShared
		}
		e.setAlarm()
	}
}

// Gone is Fail because the peer is gone: if messages of it lack memory, they are delivered
// first, for which there is the linger time. Nothing is sent meanwhile, and that requests
// under way fail is no news.
func (e *Engine) Gone(now time.Duration, cause error) {
	if e.packed.n == 0 || e.state != engineUp {
		e.Fail(now, cause)
	} else if !e.gone {
		e.gone = true
		e.flush(cause, now+e.cfg.Linger)
	}
}

// flush has the engine fail at a time, or before, and send nothing until then.
func (e *Engine) flush(cause error, by time.Duration) {
	e.flushing, e.flushErr, e.flushBy = true, cause, by
	e.setAlarm()
	e.cap.leave(e)
}

// flushGrace is how long the engine waits for the completion that tells why the
// queue pair failed, when it sees one that was flushed first: the order of send
// and receive completions is not promised.
const flushGrace = 5 * time.Millisecond

// failedRequest takes a completion with an error.
func (e *Engine) failedRequest(now time.Duration, c *cq.Completion) {
	e.stats.countStatus(c.Status)
	if e.goAwaySent { // the peer left at our GOAWAY; only control messages came after it
		e.Fail(now, ErrClosed)
	} else if c.Status != cq.WRFlushError && !e.gone {
		e.Fail(now, c.Err())
	} else if !e.flushing && e.state < engineFailed {
		e.flush(c.Err(), now+flushGrace)
	}
}

func (e *Engine) failSocket(s *Socket, cause error) {
	for in := s.inHead; in != nil; in = in.next {
		e.arrivals.forget(in) // others need not wait for it
	}
	e.failSends(s, cause)
	if s.told {
		return
	}
	s.told = true
	if s.state == sockOpening {
		e.h.Opened(s, cause)
	} else {
		e.h.Closed(s, cause)
	}
}

// down gives everything back. No device touches the memory any more: all was
// flushed, or the queue pair is destroyed first.
func (e *Engine) down() {
	if e.state == engineDown {
		return
	}
	if err := e.qp.Close(); err != nil {
		e.stats.CloseErrors++
	}
	e.state, e.drainBy = engineDown, Never
	e.setAlarm()
	e.leaveShared()
	for e.chain.InFlight() > 0 {
		e.freeSlot(e.chain.release(), false)
	}
	for _, t := range [][]*Socket{e.table.own, e.table.peer} {
		for _, s := range t {
			if s != nil {
				e.removeSocket(s, e.err)
			}
		}
	}
	e.freeMemory()
	e.h.Down(e)
}

// Abort gives up an engine that was never started: its queue pair is closed.
func (e *Engine) Abort() {
	if err := e.qp.Close(); err != nil {
		e.stats.CloseErrors++
	}
	e.state = engineDown
	e.leaveShared()
	e.freeMemory()
}

func (e *Engine) freeMemory() {
	e.recv.free(e.mem)
	if e.slab != nil {
		e.mem.Free(e.slab)
		e.slab = nil
	}
	if e.entered {
		e.entered = false
		e.chain.scratch.leave()
	}
}
