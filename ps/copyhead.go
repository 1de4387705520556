package ps

import (
	"encoding/binary"
	"io"

	"github.com/byteexpress/byteexpress/archon"
)

// copyHead is what a copy of a replica begins with, before a snapshot of its rows, which
// has its map: little-endian
//
//	 0  u64  incarnation of the source
//	 8  u64  position of its log
//	16  u64  pushes that it applied
//	24  u64  the highest ticket of a change that it heard of
//	32  u64  ticket of the change that is under way
//	40  u32  flags: 1 it has prepared the change, 2 the rows that come with it are in the snapshot
//	44  u32  length of the text of the change's map, which follows
type copyHead struct {
	inc, at, count, ballot, ticket uint64
	prepared, staged               bool
	next                           *Map // nil: neither is the case
}

const (
	copyHeadBytes = 48

	flagPrepared = 1
	flagStaged   = 2
)

// head gives the head of a copy of this replica now.
func (g *group) head() copyHead {
	h := copyHead{inc: g.inc, at: g.log.next - 1, count: g.count, ballot: g.ballot}
	if g.change.prepared {
		h.prepared, h.ticket, h.next = true, g.change.ticket, g.change.next
	}
	if g.stage != nil && g.stage.done && (!h.prepared || g.stage.ticket == h.ticket) {
		h.staged, h.ticket, h.next = true, g.stage.ticket, g.stage.next
	}
	return h
}

// brought is the map whose rows are in the snapshot besides the replica's own; nil: none.
func (h *copyHead) brought() *Map {
	if h.staged {
		return h.next
	}
	return nil
}

func (h *copyHead) append(b []byte) []byte {
	for _, v := range [...]uint64{h.inc, h.at, h.count, h.ballot, h.ticket} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	flags := uint32(0)
	if h.prepared {
		flags |= flagPrepared
	}
	if h.staged {
		flags |= flagStaged
	}
	var text []byte
	if h.next != nil {
		text, _ = h.next.MarshalText() // it came as a text
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// readCopyHead reads a head.
func readCopyHead(r io.Reader) (h copyHead, err error) {
	var b [copyHeadBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return h, err
	}
	for i, v := range [...]*uint64{&h.inc, &h.at, &h.count, &h.ballot, &h.ticket} {
		*v = binary.LittleEndian.Uint64(b[8*i:])
	}
	flags, n := binary.LittleEndian.Uint32(b[40:]), binary.LittleEndian.Uint32(b[44:])
	h.prepared, h.staged = flags&flagPrepared != 0, flags&flagStaged != 0
	if h.inc == 0 || flags > flagPrepared|flagStaged || n > maxMapText || (flags != 0) != (n != 0) {
		return h, archon.Errorf(archon.Internal, "copy of replica %#x with flags %#x and a map of %d bytes", h.inc, flags, n)
	}
	if n > 0 {
		text := make([]byte, n)
		if _, err := io.ReadFull(r, text); err != nil {
			return h, err
		}
		h.next = new(Map)
		err = h.next.UnmarshalText(text)
	}
	return h, err
}
