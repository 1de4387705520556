package core

import (
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/prefetch"
	"github.com/byteexpress/byteexpress/mr"
)

// completeRecv takes a completed receive: a control message, or the immediate of
// a finished transfer.
func (e *Engine) completeRecv(now time.Duration, c *cq.Completion) {
	if e.shared != nil {
		e.completeShared(now, c)
		return
	}
	entry, ok := e.recv.complete(uint32(c.ID))
	if !ok {
		e.Fail(now, errUnknownCompletion)
		return
	}
	if e.received(now, entry, c) {
		e.replenish(now)
	}
}

// received takes what came in an entry. It is false if the engine is not up, or no more.
func (e *Engine) received(now time.Duration, entry int, c *cq.Completion) bool {
	if c.Status != cq.Success {
		e.failedRequest(now, c)
		return false
	}
	e.Start(now) // a message says that the peer is ready
	if e.state != engineUp {
		return false
	}
	if e.lastHeard = now; e.pinged {
		e.ping(false)
	}
	var err error
	if c.Opcode == cq.RecvWriteWithImm && c.Flags&cq.HasImm != 0 {
		err = e.onFinal(c.Imm, c.ByteLen)
	} else {
		err = e.onMessage(now, entry, int(c.ByteLen))
	}
	if err != nil {
		e.stats.ProtocolErrors++
		e.Fail(now, err)
		return false
	}
	return e.state == engineUp
}

// LookAhead has the cache get what a completed receive will need, before the completion is
// taken, but for the socket that it is for: that is what it gives, nil if it finds none. It
// changes nothing.
func (e *Engine) LookAhead(c *cq.Completion) *Socket {
	if e.state != engineUp {
		return nil
	}
	entry := uint32(c.ID)
	if e.shared == nil {
		entry += uint32(e.recv.next) - e.recv.taken
	}
	b := e.entries.header(int(entry % uint32(len(e.entries.bufs))))
	s := e.socket(wire.SocketOf(b))
	if isLarge(c, b) {
		e.prefetchLarge()
		if s != nil {
			prefetch.Object(s.socketRest)
		}
	}
	return s
}

// replenish posts replacements for consumed receives, and grants them.
func (e *Engine) replenish(now time.Duration) {
	if e.shared != nil {
		e.regrant(now)
		return
	}
	n := e.recv.missing()
	if n < len(e.recv.bufs)/2 || e.state != engineUp {
		return
	}
	e.unpackAll() // what has come before what may
	wrs := e.recv.prepare(n, e.mem, e.chain.scratch.recvs)
	if len(wrs) == 0 {
		e.retryBy(now + MemoryRetry)
		return
	}
	n, err := e.qp.PostRecv(wrs)
	e.recv.wasPosted(n)
	e.credits.Posted(n)
	e.stats.RecvPosts++
	if err != nil {
		e.Fail(now, err)
	}
}

// onMessage takes the control message in a receive's entry.
func (e *Engine) onMessage(now time.Duration, entry, n int) error {
	var h wire.Header
	if n < wire.HeaderLen {
		return protocolError(0, "message length", uint64(n), "at least 16")
	}
	if err := h.Parse(e.entries.header(entry), n-wire.HeaderLen); err != nil {
		return err
	}
	if !e.credits.Learn(Count(h.Granted)) {
		return protocolError(h.Type, "granted", uint64(h.Granted), "at most the receive depth of the hello ahead of what was sent")
	}
	if h.Type == wire.Credit {
		return nil
	}
	body := e.entries.bufs[entry][:n-wire.HeaderLen]
	switch h.Type {
	case wire.Ping:
		e.control(control{typ: wire.Pong, a: wire.U64(body)})
		return nil
	case wire.Pong:
		return nil
	case wire.GoAway:
		e.Fail(now, ErrPeerClosed)
		return nil
	case wire.Recall, wire.Return:
		return e.onLent(&h)
	case wire.Open:
		return e.onOpen(&h, body)
	case wire.Pack:
		return e.onPack(now, &h, entry, body)
	}
	s := e.socket(h.Socket)
	if s == nil {
		return protocolError(h.Type, "socket", uint64(h.Socket), "an open socket")
	}
	e.recent, e.recentID = s, h.Socket
	switch h.Type {
	case wire.Data:
		return e.onData(s, &h, entry, len(body))
	case wire.RTS:
		o := wire.Offer{Length: wire.U64(body)}
		if h.Flags&wire.FlagGet != 0 {
			o = wire.ParseOffer(body)
			if err := e.checkOffer(&h, &o); err != nil {
				return err
			}
		}
		return e.onRTS(now, s, &h, &o)
	case wire.Fin:
		return e.onFin(s, &h, body)
	case wire.CTS:
		return e.onCTS(s, &h, wire.ParseGrant(body))
	case wire.Reject:
		return e.onReject(s, &h, wire.Reason(wire.U32(body)))
	case wire.Cancel:
		return e.onCancel(s, &h)
	case wire.SocketCredit:
		return e.onSocketCredit(s, &h)
	}
	return e.onSocketState(now, s, &h, body)
}

// announced checks the sequence of a new message.
func (e *Engine) announced(s *Socket, t wire.Type, seq uint32) error {
	if !s.answered {
		return protocolError(t, "socket", uint64(s.id), "a socket that was accepted")
	}
	if seq != s.received {
		return protocolError(t, "sequence", uint64(seq), "one more than the last")
	}
	if s.received-s.taken >= e.backlog {
		return protocolError(t, "sequence", uint64(seq), "at most the backlog of the hello ahead of what was taken")
	}
	s.received++
	return nil
}

// deaf reports whether the application wants no more messages.
func (s *Socket) deaf() bool { return s.told }

func (e *Engine) onData(s *Socket, h *wire.Header, entry, n int) error {
	if err := e.announced(s, h.Type, h.Sequence); err != nil {
		return err
	}
	if s.deaf() {
		e.Taken(s, 1)
		return nil
	}
	e.whole(s, h.Sequence, e.entries.hand(entry)[:n])
	return nil
}

// whole delivers a small message, after those before it.
func (e *Engine) whole(s *Socket, seq uint32, b []byte) {
	if s.inHead == nil || s.unordered {
		e.counts.received++
		e.chain.scratch.Told = true
		e.h.Message(s, b, 0)
		return
	}
	in := e.appendIncoming(s, seq, len(b))
	in.buf, in.state = b, recvReady
}

func (e *Engine) appendIncoming(s *Socket, seq uint32, n int) *incoming {
	in := e.newIncoming()
	in.sock, in.seq, in.length = s, seq, n
	in.append()
	return in
}

func (e *Engine) onRTS(now time.Duration, s *Socket, h *wire.Header, o *wire.Offer) error {
	if err := e.announced(s, h.Type, h.Sequence); err != nil {
		return err
	}
	if o.Length > e.cfg.MaxMessage {
		return protocolError(h.Type, "length", o.Length, "at most the message limit of the hello")
	}
	if s.deaf() {
		e.Taken(s, 1)
		if s.state <= sockClosing { // else CLOSE, on its way to the peer, says it
			e.control(control{typ: wire.Reject, id: s.id, seq: h.Sequence, reason: wire.ReasonLeaving})
		}
		return nil
	}
	in := e.appendIncoming(s, h.Sequence, int(o.Length))
	in.get, in.addr, in.rkey = h.Flags&wire.FlagGet != 0, o.Addr, mr.RKey(o.RKey)
	e.admit(now, in)
	if in.state == recvHeld {
		e.tryNew(now, in)
	}
	if in.state <= recvParked {
		e.stats.Held++
	}
	return nil
}

// invite asks for a granted message.
func (e *Engine) invite(in *incoming) {
	if in.get {
		e.window.Expect(in.expects)
		e.startRead(in)
		return
	}
	e.control(control{typ: wire.CTS, id: in.sock.id, seq: in.seq, a: mr.Addr(in.buf), b: uint64(in.transfer)<<32 | uint64(in.key)})
}

// onFinal takes the immediate of a final WRITE_WITH_IMM.
func (e *Engine) onFinal(imm, n uint32) error {
	in := e.transfers.find(imm)
	if in == nil {
		return protocolError(0, "immediate", uint64(imm), "a live transfer")
	}
	if in.state == recvPublished {
		return e.onWritten(in, n)
	}
	// Where the fragments before it ended is the sender's choice.
	if most := min(in.length, e.cfg.Fragment); int(n) > most || n == 0 && most > 0 {
		return protocolError(0, "length of the final fragment", uint64(n), "at least 1, at most a fragment and the message")
	}
	e.transfers.release(in.slot)
	e.arrivals.forget(in)
	in.state = recvReady
	e.done(in)
	return nil
}

// deliver hands over the messages of a socket that are due: those at the head of
// its list that are whole, or all that are, of an unordered socket.
func (e *Engine) deliver(s *Socket) {
	for in := s.inHead; in != nil; {
		next := in.next
		if in.state == recvReady || in.state == recvVoid {
			e.finish(in)
		} else if !s.unordered {
			return
		}
		in = next
	}
}

// finish hands one message over, or drops it.
func (e *Engine) finish(in *incoming) {
	s := in.sock
	in.unlink()
	switch {
	case in.state == recvVoid:
		e.Taken(s, 1)
		e.missing(s)
	case s.deaf():
		e.dropBuffer(in)
		e.Taken(s, 1)
	default:
		e.counts.received++
		e.chain.scratch.Told = true
		e.h.Message(s, in.buf, in.reserved)
	}
	e.recycleIncoming(in)
}

// done ends one message whose state says that it is whole, or nothing.
func (e *Engine) done(in *incoming) {
	if in.sock.unordered {
		e.finish(in)
	} else {
		e.deliver(in.sock)
	}
}

// onCTS takes the peer's answer to an RTS. One for a message that we gave up is
// too late and ignored.
func (e *Engine) onCTS(s *Socket, h *wire.Header, g wire.Grant) error {
	m := s.requested.bySeq(h.Sequence)
	if m == nil {
		return s.late(h)
	}
	if m.state == sendOffered {
		return protocolError(h.Type, "sequence", uint64(h.Sequence), "that of a message that was not offered to be read")
	}
	if g.Addr+uint64(m.length) < g.Addr {
		return protocolError(h.Type, "address", g.Addr, "room for the message below 2^64")
	}
	m.unlink()
	e.window.Expect(e.cfg.PeerExpect)
	m.state, m.addr, m.rkey, m.imm = sendWriting, g.Addr, mr.RKey(g.RKey), g.Transfer
	s.writing.push(m)
	e.sched.add(writes, s)
	return nil
}

// late accepts an answer about a message that has ended here, and refuses one
// about a message that never was.
func (s *Socket) late(h *wire.Header) error {
	if int32(h.Sequence-s.sent) < 0 {
		return nil
	}
	return protocolError(h.Type, "sequence", uint64(h.Sequence), "that of a message that was asked for")
}

func (e *Engine) onReject(s *Socket, h *wire.Header, reason wire.Reason) error {
	if e.takeBack(s.offered.bySeq(h.Sequence)) {
		return nil
	}
	m := s.requested.bySeq(h.Sequence)
	if m == nil {
		return s.late(h)
	}
	e.rejected(m, reason)
	return nil
}

// rejected ends a message that the peer does not take.
func (e *Engine) rejected(m *outgoing, reason wire.Reason) {
	e.stats.Rejected++
	if m.state == sendOffered {
		m.state = sendRequested // nobody reads it
		m.refs--
	}
	e.endOutgoing(m, reasonError(ErrRejected, reason, ""))
}

// onCancel takes a message back that the peer gave up. It is ordered after the
// peer's last WRITE, so the buffer is free.
func (e *Engine) onCancel(s *Socket, h *wire.Header) error {
	for in := s.inHead; in != nil; in = in.next {
		if in.seq == h.Sequence && in.get && in.state <= recvReading {
			e.stats.Canceled++
			e.giveUp(in, wire.ReasonCanceled)
			return nil
		}
		if in.seq == h.Sequence && in.state <= recvWriting {
			e.dropTransfer(in)
			in.state = recvVoid
			e.stats.Canceled++
			e.done(in)
			return nil
		}
	}
	if (s.deaf() || e.cfg.Get) && int32(h.Sequence-s.received) < 0 {
		return nil
	}
	return protocolError(h.Type, "sequence", uint64(h.Sequence), "that of a message on its way")
}

func (e *Engine) onSocketCredit(s *Socket, h *wire.Header) error {
	if int32(h.Sequence-s.peerTaken) < 0 || int32(h.Sequence-s.sent) > 0 {
		return protocolError(h.Type, "sequence", uint64(h.Sequence), "between the last count and what was sent")
	}
	s.peerTaken = h.Sequence
	if e.startable(s) {
		e.sched.begin(s)
	}
	return nil
}
