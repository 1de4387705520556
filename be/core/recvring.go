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
	bufs [][]byte    // nil: handed out, or not allocated yet
	sges [][2]qp.SGE // of an entry: its header, and its buffer if there is one
	slab []byte
	size int // bytes of a body
}

func newEntries(n, size int, slab []byte, lkey mr.LKey) entries {
	r := entries{bufs: make([][]byte, n), sges: make([][2]qp.SGE, n), slab: slab, size: size}
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
	idBase uint64

	next   int    // the entry of the next receive to complete
	taken  uint64 // receives that completed
	posted uint64 // receives that were posted
	batch  []qp.RecvWR
}

func newRecvRing(depth, size int, slab []byte, lkey mr.LKey, idBase uint64) *recvRing {
	return &recvRing{entries: newEntries(depth, size, slab, lkey), idBase: idBase, batch: make([]qp.RecvWR, 0, depth)}
}

// outstanding is the number of receives that are posted and not completed.
func (r *recvRing) outstanding() int { return int(r.posted - r.taken) }

// missing is the number of receives that could be posted.
func (r *recvRing) missing() int { return len(r.bufs) - r.outstanding() }

// complete takes the completion of the receive with this ID and gives its entry.
// Receives complete in the order of posting (IBTA 1.4, 9.9.2.1.1): another ID
// is none of ours.
func (r *recvRing) complete(id uint32) (entry int, ok bool) {
	if r.outstanding() == 0 || id != uint32(r.taken) {
		return 0, false
	}
	entry = r.next
	if r.next++; r.next == len(r.bufs) {
		r.next = 0
	}
	r.taken++
	return entry, true
}

// prepare builds up to n receives, and stops early when memory runs out.
func (r *recvRing) prepare(n int, mem Memory) []qp.RecvWR {
	r.batch = r.batch[:0]
	i := int(r.posted % uint64(len(r.bufs)))
	for range n {
		if r.bufs[i] == nil && !r.refill(i, mem) {
			break
		}
		id := uint32(r.posted) + uint32(len(r.batch))
		r.batch = append(r.batch, qp.RecvWR{ID: r.idBase | uint64(id), SGEs: r.sges[i][:]})
		if i++; i == len(r.bufs) {
			i = 0
		}
	}
	return r.batch
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
