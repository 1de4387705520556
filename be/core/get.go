package core

import "github.com/byteexpress/byteexpress/be/internal/wire"

// Get mode: the sender of a large message offers it in its RTS, and the receiver
// READs it, a fragment at a time, when it has memory and its own window has room.
// So a receiver of many senders decides how much comes in at once. FIN ends it.
//
// A buffer that was offered is the sender's again only when FIN or REJECT came, or
// the socket's CLOSE or CLOSED, which the reader sends when its READs have ended.
// Until then a message that the sender gave up is in the socket's offered list.

// SetGet has the large messages of a socket offered to the peer from now on, or
// written to it as usual. Gathered messages, and those in memory that no peer may read
// (Memory.ReadKey), are always written. ErrUnsupported if the peer does not know get
// mode.
func (e *Engine) SetGet(s *Socket, on bool) error {
	if on && !e.cfg.Get {
		return ErrUnsupported
	}
	s.get = on
	return nil
}

// CanGet reports whether both sides know get mode. Any goroutine may ask.
func (e *Engine) CanGet() bool { return e.cfg.Get }

// checkOffer checks what a peer offers.
func (e *Engine) checkOffer(h *wire.Header, o *wire.Offer) error {
	switch {
	case !e.cfg.Get:
		return protocolError(h.Type, "flags", uint64(h.Flags), "no get mode: it was not agreed on")
	case o.Length == 0:
		return protocolError(h.Type, "length", 0, "at least 1 in get mode")
	case o.Addr+o.Length < o.Addr:
		return protocolError(h.Type, "address", o.Addr, "room for the message below 2^64")
	}
	return nil
}

// startRead begins to read a message in state recvReading.
func (e *Engine) startRead(in *incoming) {
	s := in.sock
	if s.readTail != nil {
		s.readTail.readNext = in
	} else {
		s.readHead = in
	}
	s.readTail = in
	e.sched.add(reads, s)
}

// unread takes a message out of the list of those that its socket has to read.
func (e *Engine) unread(in *incoming) {
	s := in.sock
	var last *incoming
	for p := s.readHead; p != nil; last, p = p, p.readNext {
		if p != in {
			continue
		}
		if last == nil {
			s.readHead = in.readNext
		} else {
			last.readNext = in.readNext
		}
		if s.readTail == in {
			s.readTail = last
		}
		in.readNext = nil
		break
	}
	e.noReads(s)
}

// noReads has a socket wait no longer if it has nothing to read.
func (e *Engine) noReads(s *Socket) {
	if s.readHead == nil && s.fetching.head == nil {
		e.sched.remove(reads, s)
	}
}

// visitRead prepares a READ of one fragment of the socket's oldest message that has
// something left, or of exposed memory: the two take turns.
func (e *Engine) visitRead(s *Socket) room {
	e.stats.Visits++
	in, m := s.readHead, s.fetching.head
	if in != nil && m != nil {
		if s.fetched = !s.fetched; s.fetched {
			in = nil
		}
	}
	left, expects := 0, 0
	if in != nil {
		left, expects = in.length-in.offset, in.expects-in.offset
	} else {
		left = m.length - m.offset
	}
	n := min(left, e.cfg.Fragment)
	switch {
	case n > expects && !e.window.Room(n):
		return windowFull
	case e.cap != nil && !e.cap.room(e, n):
		e.cap.wait(e, n)
		return capFull
	}
	e.signalEvery()
	if in != nil {
		e.chain.read(in, n)
	} else {
		e.chain.fetch(m, n)
	}
	e.window.Take(n)
	if e.cap != nil {
		e.cap.take(e, n)
	}
	e.stats.Reads++
	e.stats.ReadBytes += uint64(n)
	switch {
	case n < left:
	case in == nil:
		m.unlink()
		m.state = sendPosted
		e.stats.Fetches++
	default:
		if s.readHead = in.readNext; s.readHead == nil {
			s.readTail = nil
		}
		in.readNext = nil
	}
	e.sched.spend(reads, s, n, s.readHead != nil || s.fetching.head != nil)
	return roomForWrite
}

// readDone takes a READ that ended.
func (e *Engine) readDone(in *incoming, ok bool) {
	in.refs--
	in.failed = in.failed || !ok
	if e.state == engineUp && !in.failed && in.refs == 0 && (in.offset == in.length || in.gaveUp != wire.ReasonNone) {
		e.endRead(in)
	}
}

// endRead tells the peer that a message is read, or given up, and that no READ of
// it is on its way.
func (e *Engine) endRead(in *incoming) {
	s := in.sock
	e.control(control{typ: wire.Fin, id: s.id, seq: in.seq, reason: in.gaveUp})
	s.reading--
	e.arrivals.forget(in)
	in.state = recvReady
	if in.gaveUp != wire.ReasonNone {
		e.dropBuffer(in)
		in.state = recvVoid
	}
	e.done(in)
	if s.closeOwed && s.reading == 0 {
		e.onClose(s)
		return
	}
	e.mayClose(s)
}

// giveUp ends a message of the peer that was offered: it is read no further.
func (e *Engine) giveUp(in *incoming, reason wire.Reason) {
	in.gaveUp = reason
	switch in.state {
	case recvHeld, recvParked:
		e.unwait(in)
		e.control(control{typ: wire.Fin, id: in.sock.id, seq: in.seq, reason: reason})
		e.done(in)
	case recvReading:
		e.unread(in)
		if in.refs == 0 {
			e.endRead(in)
		}
	}
}

// stopReads gives up all that the socket reads.
func (e *Engine) stopReads(s *Socket, reason wire.Reason) {
	for in := s.inHead; in != nil; {
		if in.state == recvReading && in.gaveUp == wire.ReasonNone {
			e.giveUp(in, reason)
			in = s.inHead // that may have ended others too
		} else {
			in = in.next
		}
	}
}

// onFin takes the end of the peer's reading.
func (e *Engine) onFin(s *Socket, h *wire.Header, body []byte) error {
	transfer, status := wire.Pair(body)
	if transfer != 0 {
		return protocolError(h.Type, "transfer", uint64(transfer), "0")
	}
	if e.takeBack(s.offered.bySeq(h.Sequence)) { // given up meanwhile
		return nil
	}
	m := s.requested.bySeq(h.Sequence)
	if m == nil || m.state != sendOffered {
		return protocolError(h.Type, "sequence", uint64(h.Sequence), "that of a message that was offered")
	}
	if status != uint32(wire.ReasonNone) {
		e.rejected(m, wire.Reason(status))
		return nil
	}
	m.unlink()
	m.state = sendPosted
	e.stats.Offered++
	e.unref(m, true)
	return nil
}

// takeBack takes a message of an offered list back, which the peer reads no more;
// false for nil.
func (e *Engine) takeBack(m *outgoing) bool {
	if m == nil {
		return false
	}
	m.unlink()
	e.unref(m, true)
	return true
}

// releaseOffers takes back all that the peer could read.
func (e *Engine) releaseOffers(s *Socket) {
	for e.takeBack(s.offered.head) {
	}
}
