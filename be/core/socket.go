package core

import (
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
)

type sockState uint8

const (
	sockOpening   sockState = iota // OPEN sent
	sockOpen                       // messages flow
	sockClosing                    // closed here: what was queued goes out first
	sockCloseSent                  // CLOSE sent: waits for CLOSED
	sockGone                       // out of the table
)

// Socket is one logical connection on an engine.
//
// The first 64 bytes are all that a small message that is sent touches, and the second
// 64 all that one that arrives does. They lie close to those of other sockets: with ten
// thousand, each line of 64 bytes is a miss of the cache.
type Socket struct {
	share     uint64  // what it was served: see scheduler
	queue     outList // nothing sent yet
	start     link    // in line with a message to begin
	sent      uint32  // messages ever started
	peerTaken uint32  // of those, how many the peer's application took
	sending   int32   // messages whose callers were not told yet
	id        uint32
	weight    uint16       // shares
	at        [kinds]uint8 // where it waits with work of each kind
	state     sockState
	touched   bool // see TouchSend

	// User is the handler's own.
	User      any
	inHead    *incoming // not delivered yet
	received  uint32    // messages ever announced by the peer
	taken     uint32    // of those, how many our application took
	takenTold uint32    // the newest count that the peer was sent
	reading   int32     // messages in state recvReading
	*socketRest

	answered     bool // ACCEPT or REFUSE came, or the peer opened it
	told         bool // the handler had Closed, or Opened with an error
	get          bool // our large messages are offered to be read
	unordered    bool // messages are delivered as they are whole
	creditQueued bool
	closeOwed    bool // the peer's CLOSE is answered when reading and packed are 0
	fetched      bool // whose turn it is, see visitRead
	touchedToo   bool
	stream       bool // it ends where a message is missing
	missed       bool // one was given up by the peer, or by us for lack of memory
}

// socketRest is what few messages need of a socket: large ones its first line to be sent,
// and its second one when they arrive.
type socketRest struct {
	requested outList // RTS sent
	writing   outList // CTS received
	fragments [2]link // in line with fragments to write, and to read

	e         *Engine
	inTail    *incoming
	inUse     atomic.Int64 // bytes that count towards Config.SocketQuota
	walk      uint64       // the last walk over held requests that it blocked
	parked    int32        // messages that wait for fewer of these bytes
	packed    int32        // messages in state recvPacked
	short     atomic.Bool  // one of them does
	held      int32        // messages in state recvHeld
	published *incoming
	readHead  *incoming // to be read, with something left to ask for

	readTail    *incoming
	asked       uint64  // what it asked for, where others ask too: see asks
	offered     outList // ended here, and the peer may still read them
	fetching    outList // of exposed memory, with something left to ask for
	lingerUntil time.Duration
	err         error  // what Closed was told
	serial      uint32 // the how manieth its opener opened on the engine
}

// TouchSend has the cache get what a message to send needs of the socket, to be written
// to: that takes time, but nobody waits for a store. What it writes means nothing.
func (s *Socket) TouchSend() { s.touched = true }

// TouchRecv is TouchSend for a message that arrives.
func (s *Socket) TouchRecv() { s.touchedToo = true }

// Engine is the engine that the socket is on.
func (s *Socket) Engine() *Engine { return s.e }

// Unordered reports whether messages are delivered in the order in which they are
// whole, instead of that of sending.
func (s *Socket) Unordered() bool { return s.unordered }

// Stream has a socket with order end with ErrMissing where a message of the peer is given
// up, instead of going on behind it.
func (e *Engine) Stream(s *Socket) {
	if s.stream = true; s.missed {
		e.missing(s)
	}
}

// missing says that the next message will never come.
func (e *Engine) missing(s *Socket) {
	err := ErrMissing
	if e.err != nil && e.err != ErrPeerClosed {
		err = e.err // says more
	}
	if s.missed = true; s.stream {
		e.tellClosed(s, err)
	}
}

// Release gives n bytes that came with a message back to the quotas. It may be
// called from any goroutine. If it is true, messages waited for that: Engine.Room is
// due.
func (s *Socket) Release(n int) (room bool) {
	if n == 0 {
		return false
	}
	s.e.quota.Release(n)
	return s.giveBack(n)
}

// fits reports whether a message of n bytes may come in, of a quota of so many bytes of
// which it will hold more than it does. One that is longer fits when it is alone.
func (s *Socket) fits(n, more, quota int) bool {
	full := func() bool {
		used := s.inUse.Load() + int64(more)
		return quota > 0 && used > 0 && used+int64(n) > int64(quota)
	}
	if !full() {
		return true
	}
	s.short.Store(true) // before the last look, so that a Release in between is seen
	return !full()
}

// giveBack returns n bytes, and reports whether a message waits for that.
func (s *Socket) giveBack(n int) (room bool) {
	s.inUse.Add(-int64(n))
	return s.short.Load() && s.short.Swap(false)
}

// startable reports whether the next queued message may begin, as far as the
// socket is concerned.
func (e *Engine) startable(s *Socket) bool {
	return s.queue.head != nil && (s.state == sockOpen || s.state == sockClosing) && s.sent-s.peerTaken < e.peerBacklog
}

// table finds sockets by number. Each side numbers those that it opens: the
// initiator with odd numbers, the other with even ones from 2 on.
type table struct {
	own, peer []*Socket // by number >> 1
	freeOwn   []uint32
	opened    [2]uint32 // ever, by us and by the peer
}

// own numbers are odd for the initiator.
func (e *Engine) isOwn(id uint32) bool { return (id&1 == 1) == e.initiator }

// socket gives the socket of a number, nil if there is none.
func (e *Engine) socket(id uint32) *Socket {
	if e.recentID == id && e.recent != nil {
		return e.recent
	}
	t := e.table.peer
	if e.isOwn(id) {
		t = e.table.own
	}
	if i := int(id >> 1); i < len(t) {
		return t[i]
	}
	return nil
}

// newID gives a free number for a socket that we open.
func (e *Engine) newID() (uint32, bool) {
	if n := len(e.table.freeOwn); n > 0 {
		id := e.table.freeOwn[n-1]
		e.table.freeOwn = e.table.freeOwn[:n-1]
		return id, true
	}
	if len(e.table.own) == 0 && !e.cfg.Initiator {
		e.table.own = append(e.table.own, nil) // 0 is the engine's
	}
	id := uint32(len(e.table.own)) << 1
	used := len(e.table.own) - 1
	if e.cfg.Initiator {
		id |= 1
		used++
	}
	if used >= e.cfg.MaxSockets {
		return 0, false
	}
	e.table.own = append(e.table.own, nil)
	return id, true
}

func (e *Engine) addSocket(id uint32) *Socket {
	s := &Socket{id: id, weight: 1, socketRest: &socketRest{e: e}}
	t, opened := &e.table.peer, &e.table.opened[1]
	if e.isOwn(id) {
		t, opened = &e.table.own, &e.table.opened[0]
	}
	*opened++
	s.serial = *opened
	for int(id>>1) >= len(*t) {
		*t = append(*t, nil)
	}
	(*t)[id>>1] = s
	if e.sockets++; e.sockets > 1 {
		e.sched.makeSlots()
	}
	return s
}

// removeSocket takes a socket out of the table and frees all that it holds.
func (e *Engine) removeSocket(s *Socket, err error) {
	if s.state == sockGone {
		return
	}
	s.state = sockGone
	if e.recent == s {
		e.recent = nil
	}
	if e.isOwn(s.id) {
		e.table.own[s.id>>1] = nil
		e.table.freeOwn = append(e.table.freeOwn, s.id)
	} else {
		e.table.peer[s.id>>1] = nil
	}
	e.sockets--
	for k := range kinds {
		e.sched.remove(k, s)
	}
	s.readHead, s.readTail, s.reading = nil, nil, 0
	e.failSends(s, err)
	e.releaseOffers(s)
	e.dropIncoming(s)
	e.dropPublished(s, err)
	e.tellClosed(s, err)
}

// failSends ends every message of a socket that is not wholly in the chain.
func (e *Engine) failSends(s *Socket, err error) {
	for _, l := range []*outList{&s.writing, &s.fetching, &s.requested, &s.queue} {
		for l.head != nil {
			e.endOutgoing(l.head, err)
		}
	}
}

// dropIncoming forgets every message that was not delivered.
func (e *Engine) dropIncoming(s *Socket) {
	for in := s.inHead; in != nil; in = s.inHead {
		in.unlink()
		e.dropTransfer(in)
		e.recycleIncoming(in)
	}
}

// dropTransfer frees what an undelivered message holds. The peer writes to its
// buffer no more.
func (e *Engine) dropTransfer(in *incoming) {
	switch in.state {
	case recvHeld, recvParked:
		e.unwait(in)
	case recvWriting:
		e.transfers.release(in.slot)
	case recvPacked:
		e.unpack(in)
	}
	e.dropBuffer(in)
}

func (e *Engine) tellClosed(s *Socket, err error) {
	if !s.told {
		s.told, s.err = true, err
		e.chain.scratch.Told = true
		e.h.Closed(s, err)
	}
}

// Open asks the peer for a socket. The handler hears Opened.
func (e *Engine) Open(listener uint32, service string, user any) (*Socket, error) {
	return e.open(control{typ: wire.Open, a: uint64(listener), text: service}, user)
}

// OpenUnordered is Open for a socket whose messages, both ways, are delivered as
// they are whole: a long one, or one that waits for memory, does not hold up those
// behind it. ErrUnsupported if the peer does not know such sockets.
func (e *Engine) OpenUnordered(listener uint32, service string, user any) (*Socket, error) {
	if !e.cfg.Unordered && e.state == engineUp {
		return nil, ErrUnsupported
	}
	return e.open(control{typ: wire.Open, flags: wire.FlagUnordered, a: uint64(listener), text: service}, user)
}

func (e *Engine) open(c control, user any) (*Socket, error) {
	if e.state != engineUp || e.leaving {
		return nil, e.cause()
	}
	id, ok := e.newID()
	if !ok {
		return nil, ErrSockets
	}
	s := e.addSocket(id)
	s.User, s.unordered = user, c.flags&wire.FlagUnordered != 0
	c.id = id
	e.control(c)
	return s, nil
}

// CloseSocket ends a socket in good order: what was queued is sent first, for at
// most the linger time. The handler hears Closed at once.
func (e *Engine) CloseSocket(now time.Duration, s *Socket) {
	switch s.state {
	case sockOpening:
		e.tellClosed(s, ErrClosed)
		s.state = sockClosing // ACCEPT will be answered by CLOSE
	case sockOpen:
		s.state = sockClosing
		s.lingerUntil = now + e.cfg.Linger
		e.tellClosed(s, ErrClosed)
		e.rejectHeld(s) // before stopReads, which may end in CLOSE
		e.stopReads(s, wire.ReasonLeaving)
		if s.closeOwed && s.state == sockClosing {
			e.onClose(s)
			return
		}
		if s.sending > 0 {
			e.lingering = append(e.lingering, s)
			e.setAlarm()
		}
		e.mayClose(s)
	}
}

// rejectHeld answers the requests of a closing socket that were not granted, or only wait
// for their turn: its CLOSE must be the last that the peer hears of them. Messages that are
// there and lack memory are dropped.
func (e *Engine) rejectHeld(s *Socket) {
	for in := s.inHead; in != nil; {
		next := in.next
		if in.state <= recvParked || in.state == recvWriting && in.line == &e.waiting {
			e.reject(in, wire.ReasonLeaving)
		} else if in.state == recvPacked {
			e.unpack(in)
			in.state = recvVoid
		}
		in = next
	}
	e.deliver(s)
}

// reject tells the peer that a message is not taken that it was not told to send. deliver
// is to follow.
func (e *Engine) reject(in *incoming, reason wire.Reason) {
	e.dropTransfer(in)
	in.state = recvVoid
	e.control(control{typ: wire.Reject, id: in.sock.id, seq: in.seq, reason: reason})
}

// mayClose sends the CLOSE of a closing socket that has nothing left to send, and
// nothing that it still reads from the peer.
func (e *Engine) mayClose(s *Socket) {
	if s.sending == 0 && s.reading == 0 && s.state == sockClosing {
		e.sendClose(s)
	}
}

func (e *Engine) sendClose(s *Socket) {
	s.state = sockCloseSent
	e.control(control{typ: wire.Close, id: s.id})
}

// linger ends the sends of closing sockets whose time is over, and forgets those
// that finished.
func (e *Engine) linger(now time.Duration) {
	keep := e.lingering[:0]
	for _, s := range e.lingering {
		if s.state == sockClosing && now < s.lingerUntil {
			keep = append(keep, s)
		} else if s.state == sockClosing {
			e.cancelAll(s, ErrClosed)
		}
	}
	clear(e.lingering[len(keep):])
	e.lingering = keep
}

// Taken says that the application took n more messages of the socket. At every
// half backlog the peer is told.
func (e *Engine) Taken(s *Socket, n int) {
	s.taken += uint32(n)
	if s.taken-s.takenTold < max(e.backlog/2, 1) || s.creditQueued || s.state >= sockCloseSent || e.state != engineUp {
		return
	}
	s.creditQueued = true
	e.control(control{typ: wire.SocketCredit, sock: s, id: s.id})
}
