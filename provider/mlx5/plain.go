package mlx5

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/qp"
)

// putPlain puts and notes the requests that come first in wrs as long as they are of
// the most common kinds, and says how many those were: no atomics, one segment or
// inline payload, and not over the ring's end. It does what check, put and enter do,
// in one piece for the sake of speed; last and units are of the last one.
func (s *sendQueue) putPlain(wrs []qp.SendWR, last *uint32, units *int) (n int) {
	if s.caps.SendSGE == 0 {
		return 0
	}
	ring, book := s.b, s.book.b
	block, head := s.blocks, s.head
	longest := uint32(min(s.max, qp.MaxMessage))
	fence := s.fence
	for ; n < len(wrs); n++ {
		w := &wrs[n]
		if w.Opcode > qp.Read || w.Flags > 15 {
			break
		}
		op := &operations[w.Opcode&7]
		from := int(block&s.mask) << blockShift
		b := (*[blockSize]byte)(ring[from:])
		at := ctrlSize
		if op.remote {
			at += raddrSize
		}
		if w.Flags&qp.Inline == 0 {
			if len(w.SGEs) != 1 {
				break
			}
			g := &w.SGEs[0]
			if g.Length-1 >= longest { // none, or too long
				break
			}
			binary.BigEndian.PutUint64(b[at&48:], uint64(g.Length)<<32|uint64(g.LKey))
			binary.BigEndian.PutUint64(b[at&48+8:], g.Addr)
			at += dataSize
		} else {
			k := len(w.Inline)
			end := from + at + inlineHeader + k
			if len(w.SGEs) != 0 || k == 0 || k > s.caps.Inline || uint32(k) > longest || end > len(ring) || w.Opcode == qp.Read {
				break
			}
			binary.BigEndian.PutUint32(b[at&48:], uint32(k)|inlineFlag)
			copy(ring[end-k:end], w.Inline)
			at += roundUp(inlineHeader+k, 16)
		}
		if op.remote {
			binary.BigEndian.PutUint64(b[16:24], w.RemoteAddr)
			binary.BigEndian.PutUint64(b[24:32], uint64(w.RKey)<<32)
		}
		bits := flagBits[w.Flags&7] | s.every
		if w.Flags&qp.Fence == 0 {
			bits |= fence
		}
		fence = 0
		imm := uint64(0)
		if op.imm {
			imm = uint64(w.Imm)
		}
		u := uint32(at) >> 4
		binary.BigEndian.PutUint64(b[:8], uint64(block&0xffff<<8|uint32(op.code))<<32|uint64(s.qpn<<8|u))
		binary.BigEndian.PutUint64(b[8:16], uint64(bits)<<32|imm)
		e := (*[bookEntry]byte)(book[int(block&s.book.mask)*bookEntry:])
		binary.NativeEndian.PutUint64(e[:8], w.ID)
		binary.NativeEndian.PutUint32(e[8:12], head)
		binary.NativeEndian.PutUint32(e[12:], 0)
		*last, *units = block, int(u)
		block += (u + 3) / 4
		head++
	}
	if n > 0 {
		s.blocks, s.head, s.fence = block, head, 0
	}
	return n
}
