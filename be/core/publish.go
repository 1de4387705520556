package core

import (
	"errors"
	"fmt"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
)

// A known buffer: the receiver publishes it once, and the sender writes to it as
// often as it likes, with no exchange before. It has a transfer slot of its own for
// as long as its socket lives; each final WRITE_WITH_IMM names it.

// ErrToken says that a token is not one of the socket.
var ErrToken = errors.New("token is not one of this socket")

// Publish lets the peer of a socket write to b, to whose bytes key opens the way,
// whenever it likes. written(nil) is called after each write, and written with an error once,
// at the end of the socket, when the peer writes no more: until then b must not be
// freed. ErrUnsupported if the peer does not know how.
func (e *Engine) Publish(s *Socket, b []byte, key mr.RKey, written func(error)) (wire.Token, error) {
	switch {
	case s.state != sockOpen:
		return wire.Token{}, e.closed(s)
	case !e.cfg.Publish:
		return wire.Token{}, ErrUnsupported
	case uint64(len(b)) > e.cfg.MaxMessage:
		return wire.Token{}, ErrTooLarge
	}
	in := e.newIncoming()
	in.sock, in.length, in.written, in.state = s, len(b), written, recvPublished
	transfer, err := e.transfers.take(in)
	if err != nil {
		e.recycleIncoming(in)
		return wire.Token{}, err
	}
	in.next, s.published = s.published, in
	return wire.Token{Socket: s.id, Transfer: transfer, RKey: uint32(key), Tag: e.tag(s, 0), Addr: mr.Addr(b), Length: uint64(len(b))}, nil
}

// ErrTransfers says that an engine has no free transfer slot.
var ErrTransfers = errors.New("too many published buffers and messages on their way on one engine")

// Put writes b to the start of the buffer that the peer published as t. It takes b
// and calls done as Send does; with nil, the peer's memory has all of it. It keeps
// no order with messages. One that is given up may have been written in part. A
// token that lies about the peer's memory ends the engine.
func (e *Engine) Put(s *Socket, t wire.Token, b []byte, lkey mr.LKey, tag uint64, done func(error)) {
	m := e.ofBuffer(b, lkey, tag, done)
	switch {
	case s.state != sockOpen || !e.Up():
		e.endOutgoing(m, e.closed(s))
		return
	case !e.cfg.Publish:
		e.endOutgoing(m, ErrUnsupported)
		return
	case t.Socket != s.id || t.Tag != e.tag(s, 1):
		e.endOutgoing(m, ErrToken)
		return
	case uint64(m.length) > t.Length:
		e.endOutgoing(m, fmt.Errorf("%w: %d bytes, the published buffer has %d", ErrTooLarge, m.length, t.Length))
		return
	}
	m.sock, m.known, m.more = s, true, true
	s.sending++
	e.sending++
	m.state, m.addr, m.rkey, m.imm = sendWriting, t.Addr, mr.RKey(t.RKey), t.Transfer
	s.writing.push(m)
	e.sched.add(writes, s)
}

// tag is in the tokens that one end of a socket publishes, ours is 0, and in no others: not
// in those of the other end, of a socket that had the number before, or of another engine.
// Both ends count the sockets alike, as each OPEN comes once and in order.
func (e *Engine) tag(s *Socket, end int) uint32 {
	if e.tags == [2]uint32{} {
		return 0
	}
	return e.tags[end] + s.serial
}

// TagTokens gives numbers to tell the tokens of both sides of this engine by, our own first,
// which differ from those of other engines: both sides must know them. Without, a
// token of another end or engine may pass for one of a socket. It is called before Start.
func (e *Engine) TagTokens(own, peer uint32) { e.tags = [2]uint32{own, peer} }

// closed is why a socket takes nothing more.
func (e *Engine) closed(s *Socket) error {
	switch {
	case e.err != nil:
		return e.err
	case s.err != nil: // who closed it first
		return s.err
	}
	return ErrClosed
}

// onWritten takes the immediate of a published buffer.
func (e *Engine) onWritten(in *incoming, n uint32) error {
	if most := min(in.length, e.cfg.Fragment); int(n) > most {
		return protocolError(0, "length of the final fragment", uint64(n), "at most a fragment and the published buffer")
	}
	e.stats.Written++
	if !in.sock.deaf() {
		e.chain.scratch.Told = true
		in.written(nil)
	}
	return nil
}

// dropPublished ends what a socket published: the peer writes no more.
func (e *Engine) dropPublished(s *Socket, err error) {
	for in := s.published; in != nil; in = s.published {
		s.published = in.next
		e.transfers.release(in.slot)
		written := in.written
		e.recycleIncoming(in)
		written(err)
	}
}
