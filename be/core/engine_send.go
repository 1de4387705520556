package core

import (
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
)

// Flush schedules as much as slots, credits and window allow, and posts it with
// one doorbell.
func (e *Engine) Flush(now time.Duration) {
	if e.state != engineUp || e.flushErr != nil {
		return
	}
	if e.controls.n > maxControls {
		e.Fail(now, protocolError(0, "requests without credits for the answers", uint64(e.controls.n), "fewer"))
		return
	}
	if e.leaving && !e.goAwaySent && (e.sending == 0 || now >= e.leaveBy) {
		e.goAwaySent, e.leaveBy = true, now+e.cfg.Linger
		e.control(control{typ: wire.GoAway, reason: wire.ReasonLeaving})
	}
	e.schedule(now)
	if e.chain.Pending() == 0 {
		return
	}
	wrs := e.chain.flush()
	n, err := e.qp.PostSend(wrs)
	e.chain.flushed(n)
	e.stats.Doorbells++
	e.stats.Requests += uint64(n)
	if err != nil {
		e.Fail(now, err)
	}
}

func (e *Engine) schedule(now time.Duration) {
	if e.chain.Free() == 0 {
		e.slotWait.update(now, e.hasWork())
		return
	}
	e.slotWait.update(now, false)
	for e.controls.n > 0 && e.chain.Free() > 0 && e.credits.CanSend() {
		e.sendControl()
	}
	if !e.goAwaySent {
		e.scheduleSockets(now)
	}
	if e.credits.Owed() && e.credits.CanCredit() && e.chain.Free() > 0 {
		e.sendHeader(wire.Credit, 0, 0, 0, nil)
		e.stats.CreditMessages++
	}
}

// scheduleSockets visits the sockets in turn, one message start or one fragment
// a visit, those that begin and those that write by turns.
func (e *Engine) scheduleSockets(now time.Duration) {
	creditStop, windowStop := false, false
	tries := e.writes.n
	for e.chain.Free() > 0 {
		canStart := e.starts.n > 0
		if canStart && !e.credits.CanSend() {
			creditStop, canStart = true, false
		}
		canWrite := e.writes.n > 0 && tries > 0
		switch {
		case !canStart && !canWrite:
			e.creditWait.update(now, creditStop)
			e.windowWait.update(now, windowStop)
			return
		case canStart && (!canWrite || e.turn):
			e.visitStart(e.starts.head.sock)
			e.turn = false
		default:
			e.turn = true
			switch e.visitWrite(e.writes.head.sock) {
			case wroteSome:
				tries = e.writes.n
			case needsCredit:
				creditStop = true
				tries--
			case needsWindow:
				windowStop = true
				tries = 0 // the window is the engine's: nobody can write
			}
		}
	}
	e.creditWait.update(now, creditStop)
	e.windowWait.update(now, windowStop)
}

// visitStart begins the socket's next message: whole if it is small, else by
// asking. There is a credit.
func (e *Engine) visitStart(s *Socket) {
	m := s.queue.head
	m.unlink()
	m.seq = s.sent
	s.sent++
	if m.length <= e.cfg.EagerLimit && len(m.pieces) <= e.chain.PayloadSegments() {
		m.state = sendPosted
		m.refs++
		e.sendHeader(wire.Data, s.id, m.seq, 0, m)
		e.stats.Eager++
		e.stats.EagerBytes += uint64(m.length)
	} else {
		m.state = sendRequested
		s.requested.push(m)
		n := wire.PutU64(e.chain.header()[wire.HeaderLen:], uint64(m.length))
		e.sendHeader(wire.RTS, s.id, m.seq, n, nil)
	}
	if s.startable() {
		e.starts.rotate()
	} else {
		e.starts.remove(&s.starts)
	}
}

type writeResult uint8

const (
	wroteSome writeResult = iota
	needsCredit
	needsWindow
)

// visitWrite prepares one fragment of the socket's oldest granted message.
func (e *Engine) visitWrite(s *Socket) writeResult {
	m := s.writing.head
	n := min(m.length-m.offset, e.cfg.Fragment)
	if !e.window.Room(n) {
		return needsWindow
	}
	// A fragment of many pieces may end early, so that it is not the last one.
	if m.offset+n == m.length && !e.credits.CanSend() {
		e.writes.rotate()
		return needsCredit
	}
	n, final := e.chain.write(m, n)
	e.window.Take(n)
	m.refs++
	e.stats.Fragments++
	e.stats.WriteBytes += uint64(n)
	if final {
		e.credits.Consume()
		m.unlink()
		m.state = sendPosted
		e.stats.Rendezvous++
	}
	if s.writing.head == nil {
		e.writes.remove(&s.writes)
	} else {
		e.writes.rotate()
	}
	return wroteSome
}

// hasWork reports whether anything waits to be sent.
func (e *Engine) hasWork() bool { return e.controls.n > 0 || e.starts.n > 0 || e.writes.n > 0 }

// completeSend frees the slots up to a completed request.
func (e *Engine) completeSend(now time.Duration, c *cq.Completion) {
	n := e.chain.completed(uint32(c.ID))
	if n == 0 {
		e.Fail(now, errUnknownCompletion)
		return
	}
	if c.Status != cq.Success {
		e.failedRequest(now, c)
	}
	for range n {
		e.freeSlot(e.chain.release())
	}
	if e.goAwaySent && e.state == engineUp && e.controls.n == 0 && e.chain.InFlight()+e.chain.Pending() == 0 {
		e.Fail(now, ErrClosed)
	}
}

func (e *Engine) freeSlot(s slot) {
	e.window.Return(s.bytes)
	if s.msg != nil {
		e.unref(s.msg)
	}
}
