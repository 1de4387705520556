package core

import (
	"errors"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// entries are the places of receives. Each has a place for the header in a slab and a
// buffer for the body, so that the body of an eager message lies at the start of a
// buffer of its own: it is handed out as it is, and a fresh one takes its place.
type entries struct {
	bufs [][]byte // nil: handed out, or not allocated yet
	slab []byte
	*refills
}

// refills are what posts of receives need of the entries.
type refills struct {
	sges [][2]qp.SGE // of an entry: its header, and its buffer if there is one
	size int         // bytes of a body
}

func newEntries(n, size int, slab []byte, lkey mr.LKey) entries {
	r := entries{bufs: make([][]byte, n), slab: slab, refills: &refills{make([][2]qp.SGE, n), size}}
	for i := range r.sges {
		r.sges[i][0] = qp.SGE{Addr: mr.Addr(r.header(i)), Length: wire.HeaderLen, LKey: lkey}
	}
	return r
}

// header is the place of entry i's header.
func (r *entries) header(i int) []byte {
	return r.slab[i*wire.HeaderLen : (i+1)*wire.HeaderLen : (i+1)*wire.HeaderLen]
}

// recvRing is the ring of posted receives of one engine.
type recvRing struct {
	entries
	next   int32  // the entry of the next receive to complete
	fill   int32  // the entry of the next receive to be posted
	taken  uint32 // receives that completed, mod 2^32
	posted uint32 // receives that were posted, mod 2^32
	idHigh uint32 // the high half of their IDs
}

func newRecvRing(depth, size int, slab []byte, lkey mr.LKey, idBase uint64) recvRing {
	// Not all rings begin with the first entry: those of all would share few places of a
	// cache.
	first := int32(idBase >> 32 & 0xffff % uint64(depth))
	return recvRing{entries: newEntries(depth, size, slab, lkey), next: first, fill: first, idHigh: uint32(idBase >> 32)}
}

// outstanding is the number of receives that are posted and not completed.
func (r *recvRing) outstanding() int { return int(r.posted - r.taken) }

// missing is the number of receives that could be posted.
func (r *recvRing) missing() int { return len(r.bufs) - r.outstanding() }

// after is the entry after i.
func (r *recvRing) after(i int32) int32 {
	if i++; int(i) == len(r.bufs) {
		return 0
	}
	return i
}

// complete takes the completion of the receive with this ID and gives its entry.
// Receives complete in the order of posting (IBTA 1.4, 9.9.2.1.1): another ID
// is none of ours.
func (r *recvRing) complete(id uint32) (entry int, ok bool) {
	if r.posted == r.taken || id != r.taken {
		return 0, false
	}
	entry = int(r.next)
	r.next = r.after(r.next)
	r.taken++
	return entry, true
}

// prepare builds up to n receives, into a batch that has room for them, and stops early
// when memory runs out.
func (r *recvRing) prepare(n int, mem Memory, batch []qp.RecvWR) []qp.RecvWR {
	batch = batch[:0]
	i := r.fill
	for range n {
		if r.bufs[i] == nil && !r.refill(int(i), mem) {
			break
		}
		id := r.posted + uint32(len(batch))
		batch = append(batch, qp.RecvWR{ID: uint64(r.idHigh)<<32 | uint64(id), SGEs: r.sges[i][:]})
		i = r.after(i)
	}
	return batch
}

// wasPosted says that the device took the first n of those that were prepared.
func (r *recvRing) wasPosted(n int) {
	r.posted += uint32(n)
	r.fill = int32((int(r.fill) + n) % max(len(r.bufs), 1))
}

func (r *entries) refill(i int, mem Memory) bool {
	b, err := mem.Alloc(r.size)
	if err != nil {
		return false
	}
	key, err := mem.LKey(b)
	if err != nil {
		mem.Free(b)
		return false
	}
	r.bufs[i], r.sges[i][1] = b, qp.SGE{Addr: mr.Addr(b), Length: uint32(len(b)), LKey: key}
	return true
}

// lacking says why there was no buffer of size bytes for a receive.
func lacking(mem Memory, size int) error {
	b, err := mem.Alloc(size)
	if err == nil {
		mem.Free(b)
		err = errors.New("out of registered memory for receives")
	}
	return err
}

// hand gives entry i's buffer away.
func (r *entries) hand(i int) []byte {
	b := r.bufs[i]
	r.bufs[i] = nil
	return b
}

// free gives every buffer back.
func (r *entries) free(mem Memory) {
	for i := range r.bufs {
		if b := r.hand(i); b != nil {
			mem.Free(b)
		}
	}
}
