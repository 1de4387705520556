package core

import (
	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// recvRing is the ring of posted receives. Each entry has a place for the header
// in the ring's slab and a buffer for the body, so that the body of an eager
// message lies at the start of a buffer of its own: it is handed out as it is,
// and a fresh one takes its place.
type recvRing struct {
	bufs   [][]byte // nil: handed out, or not allocated yet
	keys   []qp.SGE // of bufs
	slab   []byte
	lkey   mr.LKey
	idBase uint64
	size   int // bytes of a body

	taken  uint64 // receives that completed
	posted uint64 // receives that were posted
	batch  []qp.RecvWR
	sges   [][2]qp.SGE
}

func newRecvRing(depth, size int, slab []byte, lkey mr.LKey, idBase uint64) *recvRing {
	return &recvRing{
		bufs: make([][]byte, depth), keys: make([]qp.SGE, depth), slab: slab, lkey: lkey, idBase: idBase, size: size,
		batch: make([]qp.RecvWR, 0, depth), sges: make([][2]qp.SGE, depth),
	}
}

// header is the place of entry i's header.
func (r *recvRing) header(i int) []byte {
	return r.slab[i*wire.HeaderLen : (i+1)*wire.HeaderLen : (i+1)*wire.HeaderLen]
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
	entry = int(r.taken % uint64(len(r.bufs)))
	r.taken++
	return entry, true
}

// prepare builds up to n receives, and stops early when memory runs out.
func (r *recvRing) prepare(n int, mem Memory) []qp.RecvWR {
	r.batch = r.batch[:0]
	for k := range n {
		seq := r.posted + uint64(k)
		i := int(seq % uint64(len(r.bufs)))
		if r.bufs[i] == nil && !r.refill(i, mem) {
			break
		}
		r.sges[i] = [2]qp.SGE{{Addr: mr.Addr(r.header(i)), Length: wire.HeaderLen, LKey: r.lkey}, r.keys[i]}
		r.batch = append(r.batch, qp.RecvWR{ID: r.idBase | uint64(uint32(seq)), SGEs: r.sges[i][:]})
	}
	return r.batch
}

func (r *recvRing) refill(i int, mem Memory) bool {
	b, err := mem.Alloc(r.size)
	if err != nil {
		return false
	}
	reg, err := mem.Region(b)
	if err != nil {
		mem.Free(b)
		return false
	}
	r.bufs[i], r.keys[i] = b, qp.SGE{Addr: mr.Addr(b), Length: uint32(len(b)), LKey: reg.LKey}
	return true
}

// hand gives entry i's buffer away.
func (r *recvRing) hand(i int) []byte {
	b := r.bufs[i]
	r.bufs[i] = nil
	return b
}

// free gives every buffer back.
func (r *recvRing) free(mem Memory) {
	for i := range r.bufs {
		if b := r.hand(i); b != nil {
			mem.Free(b)
		}
	}
}
