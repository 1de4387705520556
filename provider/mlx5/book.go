package mlx5

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/mmio"
)

// book keeps for each slot of a queue what the completion of its request has to
// report. Whoever posts writes it, whoever polls reads it; the NIC is between them,
// and its completion orders the two, as it does the ring. So it is memory like the
// ring's, outside the Go heap, and the only word that orders by itself is tail.
type book struct {
	b    []byte // entries
	mask uint32 // slots less one
	tail *uint32
}

// An entry: the request's id, the number of requests posted before it, and the
// completion opcode where the NIC's own does not tell it. tail, the number of
// requests completed, has a cache line of its own in front of them.
const (
	bookEntry  = 16
	bookHeader = 64
)

// bookBytes is the length of a book's memory. That of a queue that is not there has
// one slot, in which nothing gets entered.
func bookBytes(slots int) int { return bookHeader + max(slots, 1)*bookEntry }

// newBook lays a book out in a mapping, from a multiple of 64 on.
func newBook(m *mmio.Mapping, off, slots int) book {
	slots = max(slots, 1)
	return book{b: m.Bytes()[off+bookHeader:][:slots*bookEntry], mask: uint32(slots - 1), tail: m.Uint32(off)}
}

func (k *book) entry(slot uint32) []byte {
	return k.b[int(slot&k.mask)*bookEntry:][:bookEntry:bookEntry]
}

// enter notes a request.
func (k *book) enter(slot uint32, id uint64, head uint32, opcode uint32) {
	e := k.entry(slot)
	binary.NativeEndian.PutUint64(e, id)
	binary.NativeEndian.PutUint32(e[8:], head)
	binary.NativeEndian.PutUint32(e[12:], opcode)
}

func (k *book) id(slot uint32) uint64     { return binary.NativeEndian.Uint64(k.entry(slot)) }
func (k *book) head(slot uint32) uint32   { return binary.NativeEndian.Uint32(k.entry(slot)[8:]) }
func (k *book) opcode(slot uint32) uint32 { return binary.NativeEndian.Uint32(k.entry(slot)[12:]) }

// completed is the number of requests completed, of the posting side.
func (k *book) completed() uint32 { return mmio.LoadUint32(k.tail) }

// complete says that so many requests are completed, of the polling side.
func (k *book) complete(n uint32) { mmio.Release32(k.tail, n) }
