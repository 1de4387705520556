package mlx5

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

// bench is a send queue over plain memory, in the state of a line.
type sendRig struct {
	sendQueue
	uar []byte
	rec []byte
}

func newSendRig(t testing.TB, l *goldenLine) *sendRig {
	const fill = 0xee
	ring, page, books, rec := mapped(t, l.QP.SQBlocks*blockSize, fill), mapped(t, 4096, 0x55), mapped(t, bookBytes(l.QP.SQBlocks), 0), mapped(t, 4096, 0)
	k := newBook(books, 0, l.QP.SQBlocks)
	k.complete(l.Pre.Tail)
	reg := newRegister(&uarPage{m: page}, l.BF.Off, l.BF.Size)
	reg.buffer = l.Pre.Buffer
	switch {
	case l.BF.ShutUp != 0, l.BF.Number == 0:
		reg.mode = BlueFlameNever
	case l.BF.Prefer == 0:
		reg.mode = BlueFlameInline
	}
	copy(rec.Bytes(), l.Pre.Record)
	return &sendRig{
		sendQueue: sendQueue{
			sendRing: sendRing{b: ring.Bytes()[:l.QP.SQBlocks*blockSize], mask: uint32(l.QP.SQBlocks - 1), qpn: l.QP.QPN, every: l.QP.Signal, fence: l.Pre.Fence},
			book:     k, reg: reg, record: rec.Uint32(4 * recordSend), blocks: l.Pre.CurPost, head: l.Pre.Head, max: qp.MaxMessage,
			caps: qp.Caps{SendWR: l.QP.MaxPost, SendSGE: l.QP.MaxGS, Inline: l.QP.Inline, Windows: true}, noAtomic: l.QP.Atomics == 0,
		},
		uar: page.Bytes(), rec: rec.Bytes()[:8],
	}
}

// postAnyway posts requests of which some are none that package qp allows: atomics of
// other lengths and messages of more than 2^31 bytes.
func (s *sendRig) postAnyway(wrs []qp.SendWR) (int, error) {
	var last, units uint32
	for i := range wrs {
		err := s.check(&wrs[i])
		if errors.Is(err, qp.ErrAtomic) && !s.noAtomic || errors.Is(err, qp.ErrMessageTooLong) {
			err = nil
		}
		if err == nil && int(s.head-s.book.completed()) >= s.caps.SendWR {
			err = qp.ErrQueueFull
		}
		if err != nil {
			if i > 0 {
				s.reg.ring(&s.sendQueue, i == 1, last, units, &wrs[i-1])
			}
			return i, err
		}
		last = s.blocks
		units = s.put(last, &wrs[i])
		s.enter(&wrs[i], last, units)
	}
	s.reg.ring(&s.sendQueue, len(wrs) == 1, last, units, &wrs[len(wrs)-1])
	return len(wrs), nil
}

// allowed reports whether package qp allows the request, whatever the queue pair.
func allowed(w *qp.SendWR) bool {
	err := w.Check(&qp.Caps{SendSGE: 1 << 20, Inline: 1 << 20, Windows: true})
	return !errors.Is(err, qp.ErrOpcode) && !errors.Is(err, qp.ErrAtomic) && !errors.Is(err, qp.ErrMessageTooLong)
}

// Every vector of the send queue, byte for byte, with these exceptions:
//   - the doorbell of lines marked doorbell_from_failed_wqe is stale memory: ours is
//     that of the last request posted;
//   - a request that is refused leaves no trace here. rdma-core leaves one half built
//     in its slot, past all that the NIC was told of, and forgets the fence that the
//     next request owes to an invalidation.
func TestGoldenSend(t *testing.T) {
	public, quirks := 0, 0
	for _, l := range golden(t, "send") {
		if l.QP.StateGS < 0 { // refused before the queue is looked at: TestPostStates
			if len(l.SQWrites)+len(l.UARWrites) > 0 {
				t.Errorf("%s: writes in a state that takes no request", l.ID)
			}
			continue
		}
		var wrs []qp.SendWR
		all := true
		for i := range l.WR {
			wrs = append(wrs, l.WR[i].request())
			all = all && allowed(&wrs[i])
		}
		s := newSendRig(t, &l)
		post := s.postAnyway
		if all {
			post = s.post
			public++
		}
		// Inline payload is one piece here: a request with too many of them is cut off.
		cut := slices.IndexFunc(l.WR, func(w goldenWR) bool { return w.Flags&qp.Inline != 0 && len(w.SGE) > l.QP.StateGS })
		if cut >= 0 {
			wrs = wrs[:cut]
		}
		n, err := 0, error(nil)
		if len(wrs) > 0 {
			n, err = post(wrs)
		}
		if cut >= 0 && err == nil {
			err = qp.ErrTooManySGEs
		}
		if want := len(l.WR); l.Ret == 0 && (n != want || err != nil) || l.Ret != 0 && (n != l.BadWR || err == nil) {
			t.Errorf("%s: posted %d of %d, %v; want ret %d, bad %d (%s)", l.ID, n, want, err, l.Ret, l.BadWR, l.Note)
			continue
		}
		image := slices.Repeat([]byte{0xee}, len(s.b))
		apply(image, l.SQWrites)
		if l.Ret != 0 { // the refused request's blocks: untouched here
			size := l.QP.SQBlocks * blockSize
			for i := range 16 * blockSize {
				at := (int(l.Post.CurPost)*blockSize + i) % size
				if int(l.Post.CurPost-l.Pre.CurPost)*blockSize+i < size {
					image[at] = 0xee
				}
			}
		}
		differ(t, l.ID, "send queue", s.b, image)
		if l.Quirk == "doorbell_from_failed_wqe" {
			quirks++
			if want := s.b[int(s.lastBlock(&l))*blockSize:][:8]; !bytes.Equal(s.uar[l.UARWrites[0].Off:][:8], want) {
				t.Errorf("%s: doorbell % x, want that of the last request, % x", l.ID, s.uar[l.UARWrites[0].Off:][:8], want)
			}
		} else {
			page := slices.Repeat([]byte{0x55}, 4096)
			apply(page, l.UARWrites)
			differ(t, l.ID, "UAR", s.uar, page)
		}
		if l.Ret != 0 && l.Post.Fence == 0 {
			s.fence = 0
		}
		if p := l.Post; s.blocks != p.CurPost || s.head != p.Head || s.fence != p.Fence || s.reg.buffer != p.Buffer || !bytes.Equal(s.rec, p.Record) {
			t.Errorf("%s: blocks %d head %d fence %d buffer %d record % x, want %+v", l.ID, s.blocks, s.head, s.fence, s.reg.buffer, s.rec, p)
		}
		for _, slot := range l.Slots {
			k := s.book
			if k.id(slot.Idx) != uint64(slot.ID) || k.head(slot.Idx) != slot.Head || k.opcode(slot.Idx) != slot.WRData {
				t.Errorf("%s: slot %d is %#x, %d, %d, want %+v", l.ID, slot.Idx, k.id(slot.Idx), k.head(slot.Idx), k.opcode(slot.Idx), slot)
			}
		}
	}
	t.Logf("%d lines by the public post, %d quirks", public, quirks)
}

// lastBlock is the ring's block where the last posted request of a line begins.
func (s *sendRig) lastBlock(l *goldenLine) uint32 {
	return l.Slots[slices.IndexFunc(l.Slots, func(x goldenSlot) bool { return x.Head == l.Post.Head-1 })].Idx
}
