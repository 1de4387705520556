package core

import (
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// sendState is where a message that we send stands.
type sendState uint8

const (
	sendQueued    sendState = iota // nothing of it was sent
	sendRequested                  // RTS sent: waits for CTS
	sendOffered                    // get mode: RTS sent, the peer reads
	sendWriting                    // the peer said where: fragments go out
	sendPosted                     // all of it is in the chain
	sendEnded                      // the caller was told
)

// outgoing is one message that we send. It lives in one list of its socket, by
// state, and is referred to by chain slots. A small message of one buffer needs two lines
// of the cache.
type outgoing struct {
	prev, next *outgoing // in list; without one, next is the next one in the same SEND
	list       *outList
	sock       *Socket

	buf    []byte // the engine's to free after an error; nil: the caller keeps the memory
	done   func(error)
	one    [1]qp.SGE
	pieces []qp.SGE // what is sent: the caller's, or one
	length int      // bytes
	seq    uint32
	refs   int32 // chain slots that refer to it, and a peer that may read it
	known  bool  // to a buffer that the peer published, or from one that it exposed: no sequence, no exchange
	large  bool  // too long, or of too many pieces, to go out at once
	state  sendState
	more   bool // outgoingRest is in use

	outgoingRest
}

// outgoingRest is what other messages need besides.
type outgoingRest struct {
	tag    uint64 // names it for Cancel; 0: none
	offset int    // bytes prepared so far
	piece  int    // the piece at the offset
	within int    // bytes of it prepared
	addr   uint64
	rkey   mr.RKey
	imm    uint32
	err    error // what the caller was told, or will be when refs is 0
}

// gathers reports whether the message is of pieces that the caller keeps: then
// the caller hears of an error only when the device uses them no more.
func (m *outgoing) gathers() bool { return m.buf == nil }

// whole puts all of the message into dst, which has room for its pieces. It says in how
// many segments.
func (m *outgoing) whole(dst []qp.SGE) (segments int) {
	switch {
	case m.length == 0:
		return 0
	case len(m.pieces) == 1:
		dst[0] = m.pieces[0]
		return 1
	}
	return m.gather(dst, m.length)
}

// gather moves the offset on by at most n bytes and at most len(dst) segments,
// which it puts into dst. It says how many.
func (m *outgoing) gather(dst []qp.SGE, n int) (segments int) {
	for n > 0 && segments < len(dst) && m.piece < len(m.pieces) {
		p := &m.pieces[m.piece]
		k := min(int(p.Length)-m.within, n)
		if k > 0 {
			dst[segments] = qp.SGE{Addr: p.Addr + uint64(m.within), Length: uint32(k), LKey: p.LKey}
			segments++
			n -= k
			m.offset += k
			m.within += k
		}
		if m.within == int(p.Length) {
			m.piece, m.within = m.piece+1, 0
		}
	}
	return segments
}

// packed is the next message in the SEND of this one.
func (m *outgoing) packed() *outgoing {
	if m.list != nil {
		return nil
	}
	return m.next
}

// outList is a list of messages, oldest first.
type outList struct {
	head, tail *outgoing
}

func (l *outList) push(m *outgoing) {
	m.list, m.prev, m.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.next = m
	} else {
		l.head = m
	}
	l.tail = m
}

// pop takes the oldest message out. There is one.
func (l *outList) pop() *outgoing {
	m := l.head
	if l.head = m.next; l.head != nil {
		l.head.prev = nil
	} else {
		l.tail = nil
	}
	m.list, m.next = nil, nil
	return m
}

// unlink takes m out of the list it is in, if any.
func (m *outgoing) unlink() {
	l := m.list
	if l == nil {
		return
	}
	if m.prev != nil {
		m.prev.next = m.next
	} else {
		l.head = m.next
	}
	if m.next != nil {
		m.next.prev = m.prev
	} else {
		l.tail = m.prev
	}
	m.list, m.prev, m.next = nil, nil, nil
}

func (l *outList) bySeq(seq uint32) *outgoing {
	for m := l.head; m != nil; m = m.next {
		if m.seq == seq {
			return m
		}
	}
	return nil
}

func (l *outList) byTag(tag uint64) *outgoing {
	for m := l.head; m != nil; m = m.next {
		if m.more && m.tag == tag {
			return m
		}
	}
	return nil
}

// newOutgoing takes a message from the engine's pool.
func (e *Engine) newOutgoing(tag uint64) *outgoing {
	m := e.chain.scratch.out
	if m == nil {
		m = new(outgoing)
	} else {
		e.chain.scratch.out = m.next
		m.next = nil // all else is zero
	}
	if tag != 0 {
		m.tag, m.more = tag, true
	}
	return m
}

// unref drops what a chain slot held of m. The last one ends the message; if its
// request did not succeed, Fail is about to.
func (e *Engine) unref(m *outgoing, ok bool) {
	m.refs--
	if m.refs > 0 {
		return
	}
	switch {
	case m.state == sendPosted && !ok && e.state == engineUp:
		e.flushed.push(m)
	case m.state == sendPosted: // in no list any more
		e.counts.sent++
		e.sending--
		s := m.sock
		if s.sending--; s.state == sockClosing {
			e.mayClose(s)
		}
		e.recycleOutgoing(m)
	case m.state == sendEnded:
		e.recycleOutgoing(m)
	}
}

// endOutgoing tells the caller. With an error, the buffer is the engine's, and
// freed when no posted request refers to it; the caller of a gathered message is
// told only then.
func (e *Engine) endOutgoing(m *outgoing, err error) {
	if m.state == sendEnded {
		return
	}
	m.unlink()
	if m.large && (m.state == sendRequested || m.state == sendOffered || m.state == sendWriting) {
		e.sched.asks.refund(m.sock, m.length-m.offset)
	}
	if m.state == sendOffered {
		m.sock.offered.push(m) // the peer may still read it
	}
	m.state, m.err, m.more = sendEnded, err, true
	if s := m.sock; s != nil {
		switch at := s.at[starts]; {
		case at == 0:
		case s.queue.head == nil:
			e.sched.remove(starts, s)
		case s.queue.head.large != asksAt(at): // it waits elsewhere with what is next
			e.sched.remove(starts, s)
			e.sched.begin(s)
		}
		switch at := s.at[writes]; {
		case at == 0:
		case s.writing.head == nil:
			e.sched.remove(writes, s)
		case at == finalsSlot:
			e.sched.resume(s) // what is next may not be a final fragment
		}
		e.noReads(s)
		s.sending--
		e.sending--
		e.mayClose(s)
	}
	if m.refs == 0 {
		e.recycleOutgoing(m)
	} else if done := m.done; done != nil && !m.gathers() {
		m.done = nil
		e.chain.scratch.Told = true
		done(err)
	}
}

func (e *Engine) recycleOutgoing(m *outgoing) {
	done, err := m.done, error(nil)
	if m.more {
		if err = m.err; err != nil && m.buf != nil {
			e.mem.Free(m.buf)
		}
		m.outgoingRest = outgoingRest{}
	}
	m.prev, m.next, m.list, m.sock, m.buf, m.done, m.one, m.pieces = nil, e.chain.scratch.out, nil, nil, nil, nil, [1]qp.SGE{}, nil
	m.length, m.seq, m.refs, m.known, m.large, m.state, m.more = 0, 0, 0, false, false, sendQueued, false
	e.chain.scratch.out = m
	if done != nil {
		e.chain.scratch.Told = true
		done(err)
	}
}
