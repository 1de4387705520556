//go:build linux

package mlx5dev_test

import (
	"encoding/binary"
	"testing"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
)

// Whatever is stored to registers and records, between good requests and beside
// them, the model neither panics nor reads outside of a ring; it says what is wrong.
func FuzzDoorbells(f *testing.F) {
	if !mmio.HasBarriers {
		f.Skip("no barriers for device memory on this processor")
	}
	f.Add([]byte{0, 8, 0, 0, 0, 0, 0, 0, 1, 0xff, 7, 7, 7, 7, 7, 7})
	f.Add([]byte{8, 0, 64, 1, 2, 3, 4, 5, 0x20, 0, 8, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, stores []byte) {
		m, q, c, done := newLoop(t)
		defer done()
		_, _ = q.PostSend([]qp.SendWR{{Opcode: qp.Send}})
		_ = c.Arm(false)
		for ; len(stores) >= 8; stores = stores[8:] {
			off, n := int(binary.LittleEndian.Uint16(stores)), int(stores[2])
			copy(m.record[stores[3]%5:], stores[4:7])
			if at := int(stores[7]) * 8; at+8 <= len(m.sq) {
				copy(m.sq[at:], stores[:8])
			}
			for page := range m.pages {
				m.Device.Rung(page, off, n)
			}
			if stores[3]&0x80 != 0 {
				_, _ = q.PostSend([]qp.SendWR{{Opcode: qp.Send}})
				_ = c.Arm(false)
			}
		}
	})
}
