package mlx5dev

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Fault is something that the NIC was told and that breaks a rule.
type Fault struct {
	Object string // "qp 0x12"
	Rule   string // what is wrong
	Bytes  []byte // the request as it lies in the ring, if it is about one
	// Receive says that it is a receive: of a shared queue, with the next slot's number.
	Receive bool
}

// Error says what is wrong, with the request explained field by field.
func (f *Fault) Error() string {
	s := "mlx5 model: " + f.Object + ": " + f.Rule
	switch {
	case len(f.Bytes) == 0:
	case f.Receive:
		s += "\n" + explainRecv(f.Bytes)
	default:
		s += "\n" + explain(f.Bytes)
	}
	return s
}

// explainRecv names the fields of a shared queue's slot.
func explainRecv(b []byte) string {
	out := &fields{b: b}
	out.line(0, 2, "reserved", "")
	if len(b) >= segment {
		out.line(2, 2, "next slot", fmt.Sprint(binary.BigEndian.Uint16(b[2:])))
	}
	out.line(4, 12, "reserved", "")
	out.segments(segment)
	return out.String()
}

// explain names the fields of a send request.
func explain(b []byte) string {
	out := &fields{b: b}
	line := out.line
	if len(b) < 16 {
		return fmt.Sprintf("  %x", b)
	}
	w0, w1 := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	line(0, 1, "opmod", "")
	line(1, 2, "wqe index", fmt.Sprint(w0>>8&0xffff))
	line(3, 1, "opcode", opcodeName(uint8(w0)))
	line(4, 3, "qp number", fmt.Sprintf("%#x", w1>>8))
	line(7, 1, "ds", fmt.Sprintf("%d units of 16 bytes", w1&0xff))
	line(8, 1, "signature", "")
	line(9, 2, "stream channel", "")
	line(11, 1, "fm_ce_se", flagNames(b[11]))
	line(12, 4, "immediate", "")
	off := 16
	op, known := opcodes[uint8(w0)]
	if uint8(w0) == opUMR {
		line(16, 1, "umr flags", "")
		line(20, 2, "klm units", "")
		line(24, 8, "parts of the key to change", "")
		line(umrKey, 1, "key state", "")
		line(umrKey+2, 1, "key access", "")
		line(umrKey+4, 4, "key's queue pair and low byte", "")
		line(umrKey+16, 8, "key start address", "")
		line(umrKey+24, 8, "key length", "")
		line(umrKLM, 4, "klm length", "")
		line(umrKLM+4, 4, "klm lkey", "")
		line(umrKLM+8, 8, "klm address", "")
		return out.String()
	}
	if known && op.remote {
		line(off, 8, "remote address", "")
		line(off+8, 4, "rkey", "")
		line(off+12, 4, "reserved", "")
		off += 16
	}
	if known && op.atomic {
		line(off, 8, "swap or add", "")
		line(off+8, 8, "compare", "")
		off += 16
	}
	out.segments(off)
	return out.String()
}

// fields is the explanation of a request's bytes, a line a field.
type fields struct {
	b   []byte
	out strings.Builder
}

func (f *fields) line(off, n int, name, value string) {
	if off+n <= len(f.b) {
		fmt.Fprintf(&f.out, "  @%-3d %-24x %s %s\n", off, f.b[off:off+n], name, value)
	}
}

// segments explains the data from an offset on.
func (f *fields) segments(off int) {
	for off+16 <= len(f.b) {
		n := binary.BigEndian.Uint32(f.b[off:])
		if n&inlineBit != 0 {
			n &^= inlineBit
			f.line(off, 4, "inline bytes", fmt.Sprint(n))
			off += (int(n) + 4 + 15) &^ 15
			continue
		}
		f.line(off, 4, "length", fmt.Sprint(n))
		f.line(off+4, 4, "lkey", "")
		f.line(off+8, 8, "address", "")
		off += 16
	}
}

func (f *fields) String() string { return strings.TrimRight(f.out.String(), "\n") }

func opcodeName(o uint8) string {
	if op, ok := opcodes[o]; ok {
		return op.name
	}
	return "unknown"
}

func flagNames(f byte) string {
	var parts []string
	for _, n := range []struct {
		bit  byte
		name string
	}{{fenceBits, "fence"}, {completeBits, "completion"}, {solicitedBit, "solicited"}} {
		if f&n.bit != 0 {
			parts = append(parts, n.name)
		}
	}
	return strings.Join(parts, ", ")
}
