package core

import (
	"errors"
	"fmt"
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
//
// What the peer was told is sent is delivered: a socket with packed messages that lack
// memory hears the cause after them, for which there is the linger time. Unless this side
// has said goodbye: then nobody takes them.
func (e *Engine) Fail(now time.Duration, cause error) {
	if e.state >= engineFailed {
		return
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
	if e.packed.n > 0 {
		e.keepBy = now + e.cfg.Linger
		e.Retry(now)
	}
	if e.chain.InFlight() == 0 && e.receiving() == 0 {
		e.drainBy = now // nothing to wait for; Tick ends it
		if e.shared != nil {
			e.drainBy += settleShared
		}
		e.setAlarm()
	}
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
	} else if c.Status != cq.WRFlushError {
		e.Fail(now, c.Err())
	} else if !e.flushing && e.state < engineFailed {
		e.flushing, e.flushErr, e.flushBy = true, c.Err(), now+flushGrace
		e.setAlarm()
		e.cap.leave(e)
	}
}

func (e *Engine) failSocket(s *Socket, cause error) {
	lost := e.leaving // what comes next on the socket will not
	for in := s.inHead; in != nil; in = in.next {
		e.arrivals.forget(in) // others need not wait for it
		if in.state == recvPacked && lost {
			e.unpack(in)
			in.state = recvVoid
		} else if in.state < recvReady {
			lost = lost || !s.unordered
		}
	}
	e.failSends(s, cause)
	switch {
	case s.told || s.packed > 0:
	case s.state == sockOpening:
		s.told = true
		e.h.Opened(s, cause)
	default:
		e.tellClosed(s, cause)
	}
}

// unpacked says that the last of a socket's packed messages was delivered.
func (e *Engine) unpacked(s *Socket) {
	switch {
	case e.state == engineUp && s.closeOwed:
		e.onClose(s)
	case e.state == engineFailed && s.closeOwed && s.reading == 0:
		e.tellClosed(s, ErrPeerClosed) // before it failed
	case e.state == engineFailed:
		e.tellClosed(s, e.err)
	}
}

// drained gives everything back but what lacks memory. No device touches the memory any
// more: all was flushed, or the queue pair is destroyed first.
func (e *Engine) drained(now time.Duration) {
	if !e.kept {
		e.kept = true
		if err := e.qp.Close(); err != nil {
			e.stats.CloseErrors++
		}
		e.leaveShared()
		for e.chain.InFlight() > 0 {
			e.freeSlot(e.chain.release(), false)
		}
		e.removeSockets(false)
		e.freeMemory()
		e.h.Drained(e)
	}
	if now < e.keepBy {
		e.Retry(now)
	}
	if e.drainBy = e.keepBy; e.packed.n == 0 || now >= e.keepBy {
		e.down()
	}
	e.setAlarm()
}

// down ends the last sockets.
func (e *Engine) down() {
	e.state, e.drainBy, e.retryAt = engineDown, Never, Never
	e.removeSockets(true)
	e.h.Down(e)
}

// removeSockets removes those that no packed messages are for, or all.
func (e *Engine) removeSockets(all bool) {
	for _, t := range [][]*Socket{e.table.own, e.table.peer} {
		for _, s := range t {
			if s == nil {
				continue
			}
			if s.packed > 0 && !all {
				e.keepPacked(s)
				continue
			}
			err := e.err
			if s.packed > 0 {
				err = fmt.Errorf("%w: %d of them, after: %v", ErrDropped, s.packed, err)
			}
			e.removeSocket(s, err)
		}
	}
}

// keepPacked has a socket hold nothing but the messages that it still delivers. Nobody reads
// or writes the rest any more, and those may lack that very memory.
func (e *Engine) keepPacked(s *Socket) {
	e.releaseOffers(s)
	e.dropPublished(s, e.err)
	s.readHead, s.readTail = nil, nil
	lost := false
	for in := s.inHead; in != nil; in = in.next {
		if lost || in.state < recvReady {
			e.dropTransfer(in)
			in.state, lost = recvVoid, !s.unordered
		}
	}
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
