package core

import (
	"math"
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
)

// Small messages that are begun one right after another go in one SEND, a PACK: one work
// request, credit and completion for all. None waits for others: what is prepared for the
// next post anyway goes together, and what has no credit or slot of its own joins it.
//
// A message that comes in a PACK is copied to a buffer of its own; no other payload is.
// That takes less time than to give the application a whole receive buffer with each, and
// than to have several owners share one; and who keeps a message keeps no more than it.

// pack is the newest request of a batch while more messages may join it.
type pack struct {
	last    *outgoing // the newest message in it; nil: none may join
	header  []byte    // the place of its header and table
	parts   int
	room    int // bytes of table and payload that more messages may add
	longest int // bytes of one that joins
}

// isOpen reports whether a message may join the newest request.
func (c *Chain) isOpen() bool { return c.scratch.sends.open.last != nil }

// close has no more join it.
func (c *Chain) close() { c.scratch.sends.open.last = nil }

// invite has messages of up to longest bytes join the newest request, DATA with m whose
// header is there, while all that is behind that is no more than most bytes.
func (c *Chain) invite(m *outgoing, header []byte, longest, most int) {
	c.scratch.sends.open = pack{last: m, parts: 1, room: most - wire.PartLen - m.length, longest: longest, header: header}
}

// takes reports whether a message may join, while it is open.
func (c *Chain) takes(m *outgoing) bool {
	p := &c.scratch.sends.open
	return m.length <= p.longest && wire.PartLen+m.length <= p.room && p.parts < wire.MaxParts &&
		len(c.scratch.sends.wrs[len(c.scratch.sends.wrs)-1].SGEs)+len(m.pieces) <= c.scratch.width
}

// join adds a message of a socket, which it takes, to the newest request.
func (c *Chain) join(id uint32, m *outgoing) {
	p := &c.scratch.sends.open
	wr := &c.scratch.sends.wrs[len(c.scratch.sends.wrs)-1]
	if p.parts == 1 {
		wire.ToPack(p.header, p.last.length)
		wr.SGEs[0].Length += wire.PartLen
	}
	wire.AddPart(p.header, p.parts, wire.Part{Socket: id, Sequence: m.seq, Length: uint32(m.length)})
	wr.SGEs[0].Length += wire.PartLen
	n := len(wr.SGEs)
	wr.SGEs = wr.SGEs[:n+m.whole(wr.SGEs[n:c.scratch.width])]
	p.last.next, p.last = m, m
	p.parts++
	p.room -= wire.PartLen + m.length
}

// pack has a small message join the newest request of the chain, or be one that others
// may join.
func (e *Engine) pack(s *Socket, m *outgoing) {
	if e.chain.isOpen() && e.chain.takes(m) {
		e.chain.join(s.id, m)
		e.stats.Packed++
		return
	}
	header := e.chain.header()
	e.sendHeader(wire.Data, 0, s.id, m.seq, 0, m)
	if e.packLimit > 0 && m.length <= int(e.packLimit) {
		e.chain.invite(m, header[:], int(e.packLimit), int(e.eagerLimit))
	}
}

// parcel is the receive buffer of a PACK with messages for which there was no memory.
type parcel struct {
	buf  []byte
	left int
}

// onPack takes a PACK apart.
func (e *Engine) onPack(now time.Duration, h *wire.Header, entry int, body []byte) error {
	if !e.cfg.Pack {
		return protocolError(h.Type, "type", uint64(h.Type), "one that was agreed on")
	}
	table, payload, err := h.ParsePack(body)
	if err != nil {
		return err
	}
	var sockets [wire.MaxParts]*Socket
	parts := int(h.Sequence)
	for i := range parts {
		id := wire.PartAt(table, i).Socket
		if sockets[i] = e.socket(id); sockets[i] == nil {
			return protocolError(h.Type, "socket", uint64(id), "an open socket")
		}
		sockets[i].TouchRecv()
	}
	var rest *parcel
	for i, s := range sockets[:parts] {
		part := wire.PartAt(table, i)
		if err := e.announced(s, h.Type, part.Sequence); err != nil {
			return err
		}
		b := payload[:part.Length]
		payload = payload[part.Length:]
		if s.deaf() {
			e.Taken(s, 1)
		} else if own, err := e.copyOf(b); err == nil {
			e.whole(s, part.Sequence, own)
		} else {
			if rest == nil {
				rest = &parcel{buf: e.entries.hand(entry)}
			}
			e.keep(s, part.Sequence, rest, b)
			e.retryBy(now + MemoryRetry)
		}
	}
	return nil
}

// keep has a message wait in the parcel until there is memory.
func (e *Engine) keep(s *Socket, seq uint32, p *parcel, b []byte) {
	in := e.appendIncoming(s, seq, len(b))
	in.state, in.parcel, in.packed = recvPacked, p, b
	p.left++
	s.packed++
	e.packed.push(in)
}

// unpack ends keep.
func (e *Engine) unpack(in *incoming) {
	e.packed.remove(in)
	in.sock.packed--
	if in.parcel.left--; in.parcel.left == 0 {
		e.mem.Free(in.parcel.buf)
	}
	in.parcel, in.packed = nil, nil
	if e.kept && e.packed.n == 0 && e.state == engineFailed {
		e.drainBy = 0
		e.setAlarm()
	}
}

// copyOf gives a message a buffer of its own. What messages that were taken leave is
// receives, of which a pool that is used up makes no small buffers: one of these will do.
func (e *Engine) copyOf(b []byte) (own []byte, err error) {
	if own, err = e.mem.Alloc(len(b)); err != nil {
		own, err = e.mem.Alloc(e.entries.size)
	}
	if err != nil {
		return nil, err
	}
	e.stats.Copies++
	return own[:copy(own, b)], nil
}

// unpackAll delivers the messages for which there is memory now: shorter ones need not wait
// for one that lacks it.
func (e *Engine) unpackAll() {
	lacks := math.MaxInt
	for in := e.packed.head; in != nil; {
		next := in.lineNext
		if in.length < lacks {
			if b, err := e.copyOf(in.packed); err == nil {
				s := in.sock
				e.unpack(in)
				in.buf, in.state = b, recvReady
				e.done(in)
				if s.packed == 0 {
					e.unpacked(s)
				}
			} else {
				lacks = in.length
			}
		}
		in = next
	}
}
