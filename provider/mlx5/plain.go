package mlx5

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
)

// putPlain puts and notes the requests that come first in wrs as long as they are of
// the most common kinds, and says how many those were: no atomics, one segment or
// inline payload, and not over the ring's end. It does what check, put and enter do,
// in one piece for the sake of speed. last and units are of the last one.
func (s *sendQueue) putPlain(wrs []qp.SendWR) (n int, last, units uint32) {
	if s.fence != 0 || s.caps.SendSGE == 0 {
		return 0, 0, 0
	}
	block := s.blocks
	for ; n < len(wrs); n++ {
		w := &wrs[n]
		if w.Opcode > qp.Read || w.Flags > 15 {
			break
		}
		op := &operations[w.Opcode&7]
		slot := int(block & s.mask)
		b := (*[blockSize]byte)(s.b[slot<<blockShift:])
		at := int(op.units) * 16
		if w.Flags&qp.Inline == 0 {
			if len(w.SGEs) != 1 {
				break
			}
			g := &w.SGEs[0]
			if g.Length-1 >= s.max { // none, or too long
				break
			}
			d := b[at&48:]
			putBE64(d[:8], uint64(g.Length)<<32|uint64(g.LKey))
			putBE64(d[8:16], g.Addr)
			at += dataSize
		} else {
			k := len(w.Inline)
			end := slot<<blockShift + at + inlineHeader + k
			if len(w.SGEs) != 0 || k == 0 || k > s.caps.Inline || uint32(k) > s.max || end > len(s.b) || w.Opcode == qp.Read {
				break
			}
			binary.BigEndian.PutUint32(b[at&48:], uint32(k)|inlineFlag)
			copy(s.b[end-k:end], w.Inline)
			at += roundUp(inlineHeader+k, 16)
		}
		if op.remote {
			putBE64(b[16:24], w.RemoteAddr)
			putBE64(b[24:32], uint64(w.RKey)<<32)
		}
		imm := uint64(0)
		if op.imm {
			imm = uint64(w.Imm)
		}
		last, units = block, uint32(at)>>4
		putBE64(b[:8], uint64(block&0xffff<<8|uint32(op.code))<<32|uint64(s.qpn<<8|units))
		putBE64(b[8:16], uint64(flagBits[w.Flags&7]|s.every)<<32|imm)
		e := (*[bookEntry]byte)(s.book.b[slot*bookEntry:]) // there is one for each block
		binary.NativeEndian.PutUint64(e[:8], w.ID)
		binary.NativeEndian.PutUint32(e[8:12], s.head+uint32(n))
		binary.NativeEndian.PutUint32(e[12:], 0)
		block += (units + 3) / 4
	}
	s.blocks = block
	s.head += uint32(n)
	return n, last, units
}

// putBE64 is binary.BigEndian.PutUint64 in one store. Of that the compiler makes
// several if it knows how v is put together, and loading the bytes for the doorbell
// right after them would have to wait.
func putBE64(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, mmio.BE64(v)) }
