package mlx5

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
)

// Whatever the NIC writes into a completion queue, polling reads within the ring
// and the books, does not panic, and advances by at most what is there.
func FuzzPoll(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0}, 8*cqeSize), uint32(0), true)
	f.Add(bytes.Repeat([]byte{0xd1}, 8*cqeSize), uint32(0xfffffff8), false)
	for op := range byte(16) {
		f.Add(bytes.Repeat(append(make([]byte, cqeSize-1), op<<4), 8), uint32(8), true)
	}
	const slots = 8
	sq, rq, rec := mapped(f, bookBytes(4), 0), mapped(f, bookBytes(2), 0), mapped(f, 8, 0)
	f.Fuzz(func(t *testing.T, ring []byte, next uint32, uidx bool) {
		entry := cqeSize << (next >> 31)
		known := &ends{num: 7, sq: newBook(sq, 0, 4), rq: newBook(rq, 0, 2), inside: &payloads{sends: make([]byte, 4*blockSize), recvs: make([]byte, 2*16), recvShift: 4}}
		r := newCQRing(make([]byte, slots*entry), entry, uidx, rec.Uint32(0))
		c := &r
		c.next = next
		copy(c.b, ring)
		find := func(id uint32) *ends {
			if id%2 == 1 {
				return nil
			}
			known.id = id
			return known
		}
		var dst [2 * slots]cq.Completion
		n := c.poll(dst[:], find)
		if n > slots || c.next-next > slots || int(c.next-next) < n {
			t.Errorf("%d completions, consumer moved by %d", n, c.next-next)
		}
		for _, w := range dst[:n] {
			if w.QPNum != 7 {
				t.Errorf("completion of queue pair %d", w.QPNum)
			}
		}
		c.forget(known)
	})
}
