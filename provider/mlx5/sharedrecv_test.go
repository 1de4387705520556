package mlx5

import (
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

func newShared(t testing.TB, slots int) *sharedRecv {
	t.Helper()
	const shift = 5
	s := &sharedRecv{b: mapped(t, slots<<shift, 0).Bytes()[:slots<<shift], shift: shift, book: newBook(mapped(t, bookBytes(slots), 0), 0, slots),
		record: mapped(t, 8, 0).Uint32(0), caps: qp.Caps{RecvWR: slots - 1, RecvSGE: 1}}
	s.link()
	return s
}

// Receives given back in any order are posted again; the NIC, which follows the
// links, sees them in the order of posting, and each id comes back once.
func TestSharedOrder(t *testing.T) {
	const slots = 8
	s := newShared(t, slots)
	nic, posted := uint32(0), uint64(0) // the NIC's place in the list
	var held []uint32
	var order []uint64
	for round := range 40 {
		for {
			n, err := s.post([]qp.RecvWR{{ID: posted}})
			if n == 0 {
				if err != qp.ErrQueueFull || len(held) != slots-1 {
					t.Fatalf("round %d: full at %d, %v", round, len(held), err)
				}
				break
			}
			if id := s.book.id(nic); id != posted {
				t.Fatalf("round %d: the NIC finds receive %d, want %d", round, id, posted)
			}
			held = append(held, nic)
			nic = uint32(nextIndex.Get(s.slot(nic)))
			posted++
		}
		for k := range 1 + round%(slots-1) { // from anywhere
			i := (k*5 + round) % len(held)
			order = append(order, s.retire(held[i]))
			held = slices.Delete(held, i, i+1)
		}
	}
	slices.Sort(order)
	if d := slices.Compact(slices.Clone(order)); len(d) != len(order) {
		t.Errorf("ids came back twice: %v", order)
	}
}

// Whatever completions name, posting and giving back stay within the queue, and no
// more receives are posted than it can have.
func FuzzShared(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0x80, 0x81, 0x80, 0, 0, 0xff})
	f.Fuzz(func(t *testing.T, ops []byte) {
		const slots = 4
		s := newShared(t, slots)
		for _, op := range ops {
			if op&0x80 != 0 {
				s.retire(uint32(op&0x7f) * 0x0101)
			} else {
				_, _ = s.post([]qp.RecvWR{{ID: uint64(op)}})
			}
			live := 0
			for i := range uint32(slots) {
				if s.book.opcode(i) != 0 {
					live++
				}
			}
			if live >= slots || s.head >= slots || s.tail >= slots {
				t.Fatalf("%d receives of %d slots, head %d, tail %d", live, slots, s.head, s.tail)
			}
		}
	})
}

// Completions that came while a smaller ring was asked for, and that it cannot hold, are
// not overwritten by each other: the move fails. One fewer fit.
func TestMoveToTooSmall(t *testing.T) {
	rec := mapped(t, 8, 0)
	for n, fits := range map[int]bool{4: true, 5: false} {
		old := newCQRing(make([]byte, 8*cqeSize), cqeSize, true, rec.Uint32(0))
		for i := range n + 1 {
			old.b[(i+1)*cqeSize-1] = 0
		}
		old.b[(n+1)*cqeSize-1] = cqeResize << 4
		to := newCQRing(make([]byte, 4*cqeSize), cqeSize, true, rec.Uint32(0))
		if old.moveTo(&to) != fits || fits && old.waiting() != n {
			t.Errorf("%d entries into 4 slots: want %v; %d wait", n, fits, old.waiting())
		}
	}
}

// Whatever is in the old ring, moving to another stays within both.
func FuzzMoveTo(f *testing.F) {
	f.Add(make([]byte, 8*cqeSize), uint32(0), uint8(2), false)
	f.Add(slices.Repeat(append(make([]byte, cqeSize-1), cqeResize<<4), 8), uint32(0xfffffffd), uint8(0), true)
	rec := mapped(f, 8, 0)
	f.Fuzz(func(t *testing.T, ring []byte, next uint32, log uint8, long bool) {
		entry := cqeSize
		if long {
			entry = longEntry
		}
		old := newCQRing(make([]byte, 8*entry), entry, true, rec.Uint32(0))
		copy(old.b, ring)
		old.next = next
		waiting := old.waiting()
		to := newCQRing(make([]byte, entry<<(1+log%5)), entry, true, rec.Uint32(0))
		if !old.moveTo(&to) {
			return
		}
		if old.next != next+1 || len(old.b) != entry<<(1+log%5) || old.waiting() > waiting {
			t.Errorf("at %d, %d entries wait, %d did", old.next, old.waiting(), waiting)
		}
	})
}
