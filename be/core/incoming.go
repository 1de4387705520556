package core

import (
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
)

// recvState is where a message that we receive stands.
type recvState uint8

const (
	recvHeld      recvState = iota // asked for; no memory or no slot yet
	recvParked                     // asked for; its socket holds as much as it may
	recvWriting                    // the peer may write to its buffer
	recvReading                    // get mode: READs are prepared or posted
	recvPublished                  // a known buffer, in no list of messages
	recvReady                      // whole; waits for those before it
	recvPacked                     // whole, in a parcel; waits for memory
	recvVoid                       // canceled or rejected: skipped
)

// incoming is one message that we receive and cannot deliver yet. It is in its
// socket's list in order of sequence, and, while it waits, in one of the engine's lines.
type incoming struct {
	prev *incoming // of the socket
	next *incoming
	sock *Socket

	state    recvState
	seq      uint32
	length   int
	since    time.Duration // when it was announced, or asked for
	coming   bool          // its memory is, see ErrComing
	passed   int           // later ones that got memory while it had none
	stops    int           // times that all waited for it
	round    uint64        // the first in which it was not looked at, see Retry
	stopBy   time.Duration // until when they do; 0: they do not
	buf      []byte
	reserved int
	slot     int // index of its transfer slot while writing

	line               *arrivalLine // in which it waits or is counted; nil: none
	linePrev, lineNext *incoming
	expects            int // bytes of it that count there, which no window holds up
	transfer           uint32
	key                mr.RKey // of buf, for the peer

	written func(error) // of a known buffer
	parcel  *parcel     // that has it while it is packed
	packed  []byte      // its place there

	// Get mode.
	get      bool
	gaveUp   wire.Reason // why it is not read to its end; ReasonNone: it is
	failed   bool        // a READ did not succeed
	readNext *incoming   // of those that its socket has to read
	addr     uint64      // of the peer's buffer
	rkey     mr.RKey
	lkey     mr.LKey // of buf
	offset   int     // bytes asked for so far
	refs     int     // chain slots that refer to it
}

// append puts in at the end of its socket's list.
func (in *incoming) append() {
	s := in.sock
	in.prev, in.next = s.inTail, nil
	if s.inTail != nil {
		s.inTail.next = in
	} else {
		s.inHead = in
	}
	s.inTail = in
}

// unlink takes in out of its socket's list.
func (in *incoming) unlink() {
	s := in.sock
	if in.prev != nil {
		in.prev.next = in.next
	} else {
		s.inHead = in.next
	}
	if in.next != nil {
		in.next.prev = in.prev
	} else {
		s.inTail = in.prev
	}
	in.prev, in.next = nil, nil
}

// transferSlot is a receiver's end of one put transfer.
type transferSlot struct {
	in         *incoming // nil: free
	generation uint16
	nextFree   int
}

// transfers is the table of transfer slots. It grows up to wire.MaxTransfers.
type transfers struct {
	slots []transferSlot
	free  int // head of the list of free slots, -1: none
}

// take gives a free slot to in, and the number that names it to the peer.
func (t *transfers) take(in *incoming) (transfer uint32, err error) {
	if t.free < 0 {
		if len(t.slots) == wire.MaxTransfers {
			return 0, ErrTransfers
		}
		t.slots = append(t.slots, transferSlot{nextFree: -1})
		t.free = len(t.slots) - 1
	}
	s := &t.slots[t.free]
	in.slot = t.free
	t.free = s.nextFree
	s.in = in
	return wire.Transfer(in.slot, s.generation), nil
}

// find gives the message of a live transfer, nil if there is none of that name.
func (t *transfers) find(transfer uint32) *incoming {
	i, g := wire.SplitTransfer(transfer)
	if i >= len(t.slots) || t.slots[i].generation != g {
		return nil
	}
	return t.slots[i].in
}

// release frees a slot. Its old name is dead from now on.
func (t *transfers) release(i int) {
	s := &t.slots[i]
	s.in = nil
	s.generation++
	s.nextFree = t.free
	t.free = i
}

func (e *Engine) newIncoming() *incoming {
	in := e.chain.scratch.in
	if in == nil {
		return new(incoming)
	}
	e.chain.scratch.in = in.next
	*in = incoming{}
	return in
}

func (e *Engine) recycleIncoming(in *incoming) {
	*in = incoming{next: e.chain.scratch.in}
	e.chain.scratch.in = in
}

// dropBuffer gives a message's buffer and quota back.
func (e *Engine) dropBuffer(in *incoming) {
	e.arrivals.forget(in)
	if in.buf != nil {
		e.mem.Free(in.buf)
		in.buf = nil
	}
	if in.reserved > 0 {
		e.quota.Release(in.reserved)
		if in.sock.giveBack(in.reserved) {
			e.madeRoom(in.sock)
		}
		in.reserved = 0
	}
}
