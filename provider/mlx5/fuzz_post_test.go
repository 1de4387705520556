//go:build linux

package mlx5

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// Whatever a NIC completes, however often, posting goes on within the rings: at most
// as many requests as a queue can have, each in its place, and polling after it.
func FuzzPostAfter(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0, 0, 0, 5}, 8))
	for op := range byte(16) {
		f.Add([]byte{op << 4, 0, 0, 2, op << 4, 0xff, 0xff, 3, op<<4 | 4, 0, 1, 0, op<<4 | 8, 0x12, 0x34, 0xff})
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		q := newBenchQueue(t)
		q.q.Given.Windows, q.q.sq.caps.Windows = true, true
		s := newShared(t, 8)
		other := &ends{num: 9, id: 6, sq: newBook(mapped(t, bookBytes(4), 0), 0, 4), rq: q.q.ends.rq, shared: s}
		q.c.find = func(id uint32) *ends {
			return map[uint32]*ends{5: &q.q.ends, 6: other}[id]
		}
		payload := make([]byte, 64)
		wrs := []qp.SendWR{
			{Opcode: qp.Write, SGEs: []qp.SGE{{Length: 8}}}, {Opcode: qp.Send, Flags: qp.Inline, Inline: payload}, {Opcode: qp.FetchAdd, SGEs: []qp.SGE{{Length: 8}}},
			{Opcode: qp.LocalInv, RKey: 0x100}, {Opcode: qp.Send},
		}
		for ; len(steps) >= 4; steps = steps[4:] {
			r := &q.c.ring
			e := r.b[int(r.next&r.mask)*cqeSize:][:cqeSize]
			copy(e[60:62], steps[1:3])
			cqeSRQNUIDX.Put(e, 5+uint32(steps[3]&3))
			cqeSopDropQPN.Put(e, uint32(steps[3])<<24)
			cqeByteCount.Put(e, uint32(steps[2]))
			owner := uint8(0)
			if r.next&(r.mask+1) != 0 {
				owner = 1
			}
			e[63] = steps[0]&^1 | owner
			var dst [2]cq.Completion
			if n := r.poll(dst[:], q.c.find); n > 1 {
				t.Fatalf("%d completions of an entry", n)
			}
			before := q.q.sq.head
			n, _ := q.q.sq.post(wrs[:1+int(steps[3])%len(wrs)])
			if uint32(n) != q.q.sq.head-before || q.q.sq.head-before > uint32(len(wrs)) {
				t.Fatalf("%d posted, %d counted", n, q.q.sq.head-before)
			}
			if left := int(q.q.sq.head - q.q.sq.book.completed()); n > 0 && left > q.q.sq.caps.SendWR {
				t.Fatalf("%d requests in a queue of %d", left, q.q.sq.caps.SendWR)
			}
			_, _ = s.post([]qp.RecvWR{{ID: 1}})
			if s.head > s.book.mask || s.tail > s.book.mask {
				t.Fatalf("shared queue at %d to %d of %d", s.head, s.tail, s.book.mask+1)
			}
			q.c.ring.forget(other)
		}
	})
}
