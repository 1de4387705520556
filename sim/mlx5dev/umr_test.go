package mlx5dev

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// goodBind binds the window 0xabcd12 to 4096 bytes for writing, at block 5 of queue
// pair 0x123, as the C provider of rdma-core writes it.
const goodBind = "00000525" + "0001230c" + "00000008" + "00abcd12" + // control; the key until now
	"b0000000" + "00040000" + "00000000203c6041" + "0000000000000000000000000000000000000000000000000000000000000000" + // UMR
	"00002000" + "00012313" + "0000000000000000" + "00007f0000001000" + "0000000000001000" + // the key's context
	"0000000000000000000000000000000000000000000000000000000000000000" +
	"00001000" + "00000777" + "00007f0000001000" + // KLM
	"000000000000000000000000000000000000000000000000" + "000000000000000000000000000000000000000000000000"

func TestDecodeUMR(t *testing.T) {
	d := decoder{qpn: 0x123, maxSGE: 2, maxInline: 64}
	r, err := d.decode(ringOf(t, goodBind), 5, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := qp.Bind{Region: 0x777, Addr: 0x7f0000001000, Length: 4096, Access: mr.RemoteWrite, RKey: 0xabcd13}
	if w := &r.wr; w.Opcode != qp.BindMW || w.RKey != 0xabcd12 || w.Bind == nil || *w.Bind != want || r.blocks != 3 {
		t.Errorf("decoded %+v, %+v", r, r.wr.Bind)
	}
	if !d.owed {
		t.Error("no fence is owed")
	}
	if _, err := d.decode(ringOf(t, good), 5, 1); err == nil || !strings.Contains(err.Error(), "no fence after") {
		t.Errorf("a request without fence after it: %v", err)
	}
}

// Every rule that is broken is told, and the explanation names the field.
func TestMalformedUMR(t *testing.T) {
	for _, tt := range []struct {
		rule, field string
		off         int
		b           byte
	}{
		{"UMR of 11 units", "ds", 7, 11},
		{"UMR flags are 0x90", "umr flags", 16, 0x90},
		{"reserved bytes", "umr flags", 17, 1},
		{"UMR has 2 units of KLM", "klm units", 21, 2},
		{"UMR changes the parts", "parts of the key", 28, 0},
		{"key of a binding has state", "key state", 64, 0x40},
		{"access flags of the key have unknown bits 0x4", "key access", 66, 4},
		{"key is of queue pair 0x124", "key's queue pair", 70, 0x24},
		{"differ", "key start address", 80, 1},
		{"differ", "key length", 95, 1},
		{"differ", "klm length", 131, 1},
		{"differ", "klm address", 143, 1},
		{"after the KLM", "", 150, 1},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			b, err := hex.DecodeString(goodBind)
			if err != nil {
				t.Fatal(err)
			}
			b[tt.off] = tt.b
			d := decoder{qpn: 0x123, maxSGE: 2, maxInline: 64}
			_, err = d.decode(ringOf(t, hex.EncodeToString(b)), 5, 3)
			if err == nil || !strings.Contains(err.Error(), tt.rule) {
				t.Fatalf("error %v, want %q", err, tt.rule)
			}
			if f := (&Fault{Object: "qp 0x123", Rule: err.Error(), Bytes: d.raw}); !strings.Contains(f.Error(), tt.field) {
				t.Errorf("%v\ndoes not name %q", f, tt.field)
			}
		})
	}
}
