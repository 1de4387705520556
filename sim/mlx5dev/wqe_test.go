package mlx5dev

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

// good is a WRITE with immediate of one segment, at block 5 of queue pair 0x123, as
// the C provider of rdma-core writes it.
const good = "00000509" + "00012303" + "0000000a" + "01020304" + // control
	"00007f0011223344" + "0000abcd" + "00000000" + // remote address
	"00000040" + "00000777" + "00007f00aabbcc00" // data

func ringOf(t testing.TB, wqe string) []byte {
	t.Helper()
	b, err := hex.DecodeString(wqe)
	if err != nil {
		t.Fatal(err)
	}
	ring := make([]byte, 8*block)
	copy(ring[5*block:], b)
	return ring
}

func TestDecode(t *testing.T) {
	d := decoder{qpn: 0x123, maxSGE: 2, maxInline: 64}
	r, err := d.decode(ringOf(t, good), 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	w := &r.wr
	if w.Opcode != qp.WriteWithImm || w.Flags != qp.Signaled|qp.Solicited || w.Imm != 0x01020304 || w.RemoteAddr != 0x7f0011223344 || w.RKey != 0xabcd ||
		len(w.SGEs) != 1 || w.SGEs[0] != (qp.SGE{Addr: 0x7f00aabbcc00, Length: 64, LKey: 0x777}) || r.blocks != 1 {
		t.Errorf("decoded %+v", r)
	}
}

// Every rule that is broken is told, and the explanation names the field.
func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		rule, field string
		off         int
		b           byte
	}{
		{"opcode 0x7 is not known", "opcode", 3, 7},
		{"opmod is 1", "opmod", 0, 1},
		{"wqe index is 6 at block 5", "wqe index", 2, 6},
		{"qp number is 0x124", "qp number", 6, 0x24},
		{"ds is 0 units", "ds", 7, 0},
		{"ds is 64 units", "ds", 7, 64},
		{"takes 2 blocks, only 1", "ds", 7, 5},
		{"signature", "signature", 8, 1},
		{"stream channel", "stream channel", 9, 1},
		{"unknown bits", "fm_ce_se", 11, 1},
		{"completion mode 0x4", "fm_ce_se", 11, 4},
		{"fence mode 0x20", "fm_ce_se", 11, 0x20},
		{"has an immediate", "immediate", 3, 0x08},
		{"reserved word", "reserved", 31, 1},
		{"segment of length 0", "length", 35, 0},
		{"without an atomic segment", "", 7, 2},
		{"RDMA_READ with inline payload", "", 32, 0x80},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			ring := ringOf(t, good)
			ring[5*block+tt.off] = tt.b
			switch tt.off {
			case 32:
				ring[5*block+3] = 0x10
				copy(ring[5*block+12:], []byte{0, 0, 0, 0})
			}
			if strings.HasPrefix(tt.rule, "without") {
				ring[5*block+3] = 0x11
				copy(ring[5*block+12:], []byte{0, 0, 0, 0})
			}
			d := decoder{qpn: 0x123, maxSGE: 2, maxInline: 64}
			_, err := d.decode(ring, 5, 1)
			if err == nil || !strings.Contains(err.Error(), tt.rule) {
				t.Fatalf("error %v, want %q", err, tt.rule)
			}
			f := &Fault{Object: "qp 0x123", Rule: err.Error(), Bytes: d.raw}
			if !strings.Contains(f.Error(), tt.field) {
				t.Errorf("%v\ndoes not name %q", f, tt.field)
			}
		})
	}
}

// Whatever lies in the ring, decoding does not leave it and does not panic; what it
// accepts is a request that package qp allows.
func FuzzDecode(f *testing.F) {
	b, _ := hex.DecodeString(good)
	f.Add(b, uint32(5), uint32(1))
	f.Add(bytes.Repeat([]byte{0xff}, 512), uint32(7), uint32(8))
	f.Fuzz(func(t *testing.T, b []byte, index, avail uint32) {
		ring := make([]byte, 8*block)
		copy(ring, b)
		d := decoder{qpn: 0x123, maxSGE: 4, maxInline: 256}
		r, err := d.decode(ring, index, avail%9)
		if len(d.raw) > 64*segment {
			t.Errorf("read %d bytes", len(d.raw))
		}
		_ = explain(d.raw)
		if err != nil {
			return
		}
		if r.blocks > avail%9 || r.blocks == 0 {
			t.Errorf("%d blocks of %d", r.blocks, avail%9)
		}
		if err := r.wr.Check(&qp.Caps{SendSGE: 4, Inline: 256}); err != nil && err != qp.ErrAtomic && err != qp.ErrMessageTooLong {
			t.Errorf("accepted %+v: %v", r.wr, err)
		}
	})
}

func FuzzDecodeRecv(f *testing.F) {
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		sges, err := decodeRecv(b[:len(b)/segment*segment], nil)
		if err == nil && len(sges) > len(b)/segment {
			t.Errorf("%d segments of %d bytes", len(sges), len(b))
		}
	})
}
