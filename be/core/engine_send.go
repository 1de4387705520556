package core

import (
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
)

// signalShare is how many completions a full window takes to come back, at least,
// if it is of as many fragments.
const signalShare = 4

// Flush schedules as much as slots, credits and window allow, and posts it with
// one doorbell.
func (e *Engine) Flush(now time.Duration) {
	if e.inLines {
		e.arrivals.Admit(now)
	}
	if e.state != engineUp {
		return
	}
	if e.controlling > maxControls {
		e.Fail(now, protocolError(0, "requests without credits for the answers", uint64(e.controlling), "fewer"))
		return
	}
	if e.flushing {
		return
	}
	if e.leaving && !e.goAwaySent && (e.sending == 0 || now >= e.leaveBy) {
		e.goAwaySent, e.leaveBy = true, now+e.cfg.Linger
		e.setAlarm()
		e.control(control{typ: wire.GoAway, reason: wire.ReasonLeaving})
	}
	e.schedule(now)
	if e.chain.Pending() == 0 {
		return
	}
	wrs, signaled := e.chain.flush()
	n, err := e.qp.PostSend(wrs)
	e.chain.flushed(n)
	e.counts.doorbells++
	e.counts.requests += uint64(n)
	e.counts.signaled += uint64(signaled)
	if err != nil {
		e.Fail(now, err)
	}
}

// Idle reports whether Flush would do nothing: it may be left out. With many engines, it
// would have to fetch all that it looks at.
func (e *Engine) Idle() bool {
	return e.controlling == 0 && e.short == 0 && e.sched.idle() && !e.credits.owed && !e.leaving && e.state == engineUp && (!e.inLines || e.arrivals.turns.n == 0)
}

func (e *Engine) schedule(now time.Duration) {
	if !e.chain.ready() {
		short := e.short &^ ofSlots
		if e.hasWork() {
			short |= ofSlots
		}
		e.stall(now, short)
		e.cap.leave(e) // others need not wait for our slots
		return
	}
	b := &e.chain.scratch.sends
	b.now, b.every = now, 0
	for e.controlling > 0 && e.chain.ready() && e.credits.CanSend() {
		e.sendControl()
	}
	if e.goAwaySent {
		e.stall(now, e.short&^ofSlots)
		e.cap.leave(e)
	} else {
		e.scheduleSockets(now)
	}
	if e.credits.Owed() && e.credits.CanCredit() && e.chain.ready() {
		e.sendHeader(wire.Credit, 0, 0, 0, 0, nil)
		e.stats.CreditMessages++
	}
}

// scheduleSockets visits the sockets in turn, one message start or one fragment
// a visit.
func (e *Engine) scheduleSockets(now time.Duration) {
	for n := e.credits.Balance(); n > reserve && e.sched.lined&hasFinals != 0; n-- {
		e.sched.resume(e.sched.finals.head)
	}
	short, room := uint8(0), roomForWrite
	for {
		may := uint8(0)
		if e.chain.ready() {
			if short = 0; e.credits.CanSend() {
				may = startable | asking
			} else if !e.sched.idle() && e.sched.beginners() > 0 {
				short = ofCredits
			}
			if room == roomForWrite {
				may |= fragmenting
			}
		}
		if e.chain.isOpen() {
			may |= startable // to join, without a credit or a slot
		}
		k, s := e.sched.next(may)
		if s == nil {
			break
		}
		switch k {
		case starts:
			if may&asking == 0 && !e.chain.takes(s.queue.head) {
				e.chain.close()
				continue
			}
			e.visitStart(s)
		case writes:
			room = e.visitWrite(s)
		case reads:
			room = e.visitRead(s)
		}
		if e.sched.idle() { // as next would find out
			short = 0
			break
		}
	}
	if e.capped && room != capFull {
		e.cap.leave(e) // it is not what we wait for
	}
	if e.sched.lined&hasFinals != 0 {
		short = ofCredits
	}
	switch room {
	case windowFull:
		short |= ofWindow
	case capFull:
		short |= ofCap
	}
	e.stall(now, short)
}

// visitStart begins the socket's next message: whole if it is small, else by
// asking. There is a credit and a slot, or the message joins the newest request.
func (e *Engine) visitStart(s *Socket) {
	m := s.queue.pop()
	m.seq = s.sent
	s.sent++
	if m.large {
		e.stats.Visits++
		s.requested.push(m)
		e.sendRTS(s, m)
		e.sched.remove(starts, s)
		e.sched.asks.spend(s, m.length, e.sched.shift)
	} else {
		m.state = sendPosted
		m.refs++
		e.pack(s, m)
		e.counts.eager++
		e.counts.eagerBytes += uint64(m.length)
		e.sched.spend(starts, s, wire.HeaderLen+m.length, e.startable(s) && !s.queue.head.large)
	}
	if e.startable(s) {
		e.sched.begin(s)
	}
}

// sendRTS asks the peer to take a large message, or in get mode to read it, if peers
// may read the memory that it is in.
func (e *Engine) sendRTS(s *Socket, m *outgoing) {
	body := e.chain.header()[wire.HeaderLen:]
	if s.get && !m.gathers() {
		if key, ok := e.mem.ReadKey(m.buf); ok {
			m.state = sendOffered
			m.refs++
			o := wire.Offer{Length: uint64(m.length), Addr: m.pieces[0].Addr, RKey: uint32(key)}
			e.sendHeader(wire.RTS, wire.FlagGet, s.id, m.seq, o.Put(body), nil)
			return
		}
	}
	m.state = sendRequested
	e.sendHeader(wire.RTS, 0, s.id, m.seq, wire.PutU64(body, uint64(m.length)), nil)
}

// room is what a fragment found: without room, nobody can write.
type room uint8

const (
	roomForWrite room = iota
	windowFull        // the engine's own bound
	capFull           // the bound over all engines
)

// signalEvery says to the batch after how many bytes of fragments one is signaled.
func (e *Engine) signalEvery() {
	if b := &e.chain.scratch.sends; b.every == 0 {
		b.every = max(max(e.window.Limit(), e.cfg.PeerExpect)/signalShare, 1)
	}
}

// visitWrite prepares one fragment of the socket's oldest granted message.
func (e *Engine) visitWrite(s *Socket) room {
	e.stats.Visits++
	m, rest := s.writing.head, e.engineRest
	n := min(m.length-m.offset, rest.cfg.Fragment)
	switch {
	case (m.known || m.offset+n > rest.cfg.PeerExpect) && !rest.window.Room(n):
		return windowFull
	case m.offset+n == m.length && !e.credits.CanSend():
		// A fragment of many pieces may end early, so that it is not the last one.
		e.sched.awaitCredit(s)
		return roomForWrite
	case e.capped && !e.cap.room(e, n):
		e.cap.wait(e, n)
		return capFull
	}
	e.signalEvery()
	n, final := e.chain.write(m, n)
	rest.window.Take(n)
	if e.capped {
		e.cap.take(e, n)
	}
	m.refs++
	rest.stats.Fragments++
	rest.stats.WriteBytes += uint64(n)
	if final {
		e.credits.Consume()
		m.unlink()
		m.state = sendPosted
		if m.known {
			e.stats.Puts++
		} else {
			e.stats.Rendezvous++
		}
	} else if s.unordered && m.next != nil {
		m.unlink() // its messages take turns: a short one does not wait for a long one
		s.writing.push(m)
	}
	e.sched.spend(writes, s, n, s.writing.head != nil)
	return roomForWrite
}

// hasWork reports whether anything waits to be sent.
func (e *Engine) hasWork() bool {
	return e.controlling > 0 || e.sched.busy() > 0
}

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
	if e.adaptive && c.Status == cq.Success {
		e.sample(now, n)
	}
	for ; n > 1; n-- {
		e.freeSlot(e.chain.release(), true) // those before the last one succeeded
	}
	e.freeSlot(e.chain.release(), c.Status == cq.Success)
	if e.goAwaySent && e.state == engineUp && e.controlling == 0 && e.chain.InFlight()+e.chain.Pending() == 0 {
		e.Fail(now, ErrClosed)
	}
}

// sample tells an adaptive window of the n oldest slots, which complete now. The
// last of them has the delay.
func (e *Engine) sample(now time.Duration, n int) {
	last := e.chain.oldest
	bytes := last.bytes
	for range n - 1 {
		last = last.next
		bytes += last.bytes
	}
	if last.bytes > 0 || bytes == 0 {
		e.window.Sample(now, last.at, bytes)
	}
}

// freeSlot ends what a slot was for. ok says whether its request succeeded.
func (e *Engine) freeSlot(s *slot, ok bool) {
	if s.bytes > 0 {
		e.window.Return(s.bytes)
		if e.capped {
			e.cap.release(s.bytes)
		}
	}
	if s.in != nil {
		e.readDone(s.in, ok)
		return
	}
	for m := s.msg; m != nil; {
		next := m.packed()
		e.unref(m, ok)
		m = next
	}
}
