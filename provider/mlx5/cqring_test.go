package mlx5

import (
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
)

// Entries of a queue pair that is forgotten make room at once; those of others stay,
// in order, also over the ring's end, and the NIC may write as many more.
func TestForget(t *testing.T) {
	const slots = 8
	for _, entry := range []int{cqeSize, longEntry} {
		for _, start := range []uint32{0, 5, 8, 13, 1<<32 - 3} {
			rec := mapped(t, 8, 0)
			r := newCQRing(make([]byte, slots*entry), entry, true, rec.Uint32(0))
			for at := start - slots; at != start; at++ { // of the lap before
				r.put(at, make([]byte, entry), cqeReq<<4)
			}
			r.next = start
			a := &ends{num: 1, id: 1, sq: newBook(mapped(t, bookBytes(16), 0), 0, 16)}
			b := &ends{num: 2, id: 2, sq: newBook(mapped(t, bookBytes(16), 0), 0, 16)}
			for i := range uint32(16) {
				a.sq.enter(i, uint64(i), i, 0)
				b.sq.enter(i, 100+uint64(i), i, 0)
			}
			nic := start
			write := func(id uint32, counter byte) {
				e := make([]byte, entry)
				cqeSRQNUIDX.Put(e[entry-cqeSize:], id)
				e[entry-3] = counter
				r.put(nic, e, cqeReq<<4)
				nic++
			}
			for i, id := range []uint32{1, 2, 1, 1, 2, 2, 1} {
				write(id, byte(i))
			}
			r.forget(a)
			if n := r.waiting(); n != 3 || r.next != start+4 || *rec.Uint32(0) == 0 {
				t.Errorf("entries of %d from %d: %d wait at %d", entry, start, n, r.next)
			}
			for i := range byte(5) { // the ring is full
				write(2, 10+i)
			}
			var dst [slots]cq.Completion
			var ids []uint64
			for _, c := range dst[:r.poll(dst[:], func(id uint32) *ends { return map[uint32]*ends{1: a, 2: b}[id] })] {
				ids = append(ids, c.ID)
			}
			if want := []uint64{101, 104, 105, 110, 111, 112, 113, 114}; !slices.Equal(ids, want) {
				t.Errorf("entries of %d from %d: %v, want %v", entry, start, ids, want)
			}
		}
	}
}
