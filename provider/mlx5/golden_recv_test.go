package mlx5

import (
	"bytes"
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

// Every vector of the receive queue, byte for byte.
func TestGoldenRecv(t *testing.T) {
	for _, l := range golden(t, "recv") {
		if l.QP.StateGS < 0 { // in RESET: TestPostStates
			continue
		}
		size := l.QP.RQSlots << l.QP.RQShift
		ring, books, rec := mapped(t, size, 0xee), mapped(t, bookBytes(l.QP.RQSlots), 0), mapped(t, 8, 0)
		k := newBook(books, 0, l.QP.RQSlots)
		k.complete(l.Pre.Tail)
		copy(rec.Bytes(), l.Pre.Record)
		r := &recvQueue{b: ring.Bytes()[:size], shift: l.QP.RQShift, book: k, record: rec.Uint32(4 * recordRecv), head: l.Pre.Head,
			caps: qp.Caps{RecvWR: l.QP.MaxPost, RecvSGE: l.QP.MaxGS}}
		n, err, want := 0, error(nil), len(l.WR)
		for i := range l.WR { // one by one: the lengths of some are more than qp allows
			w := l.WR[i].request()
			if w.Length() > qp.MaxMessage && len(w.SGEs) <= r.caps.RecvSGE && r.head-k.completed() < uint32(r.caps.RecvWR) {
				slot := int(r.head&k.mask) << r.shift
				putRecv(r.b[slot:slot+1<<r.shift], &qp.RecvWR{SGEs: w.SGEs})
				k.enter(r.head, w.ID, r.head, 0)
				r.head++
				rec.Bytes()[2], rec.Bytes()[3] = byte(r.head>>8), byte(r.head)
				n++
				continue
			}
			if _, err = r.post([]qp.RecvWR{{ID: w.ID, SGEs: w.SGEs}}); err != nil {
				break
			}
			n++
		}
		if l.Ret == 0 && (n != want || err != nil) || l.Ret != 0 && (n != l.BadWR || err == nil) {
			t.Errorf("%s: posted %d of %d, %v; want ret %d, bad %d (%s)", l.ID, n, want, err, l.Ret, l.BadWR, l.Note)
			continue
		}
		image := slices.Repeat([]byte{0xee}, size)
		apply(image, l.RQWrites)
		differ(t, l.ID, "receive queue", r.b, image)
		if r.head != l.Post.Head || !bytes.Equal(rec.Bytes()[:8], l.Post.Record) {
			t.Errorf("%s: head %d record % x, want %+v", l.ID, r.head, rec.Bytes()[:8], l.Post)
		}
		for _, s := range l.Slots {
			if k.id(s.Idx) != uint64(s.ID) {
				t.Errorf("%s: slot %d has id %#x, want %#x", l.ID, s.Idx, k.id(s.Idx), s.ID)
			}
		}
	}
}
