//go:build linux

package mlx5dev_test

import (
	"encoding/binary"
	"testing"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/verbs"
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
		fabric := sim.NewFabric(sim.Config{})
		defer fabric.Close()
		hw, err := fabric.NewDevice("mlx5_0", mlx5dev.SimConfig())
		if err != nil {
			t.Fatal(err)
		}
		m := &meddler{Device: mlx5dev.New(hw, mlx5dev.Config{})}
		pages := map[int64]bool{}
		note := &pageNoter{meddler: m, pages: pages}
		ctx, err := mlx5.NewObserved(m.system(), m.Node(), note).Open()
		if err != nil {
			t.Fatal(err)
		}
		defer ctx.Close()
		pd, _ := ctx.AllocPD()
		defer pd.Close()
		c, err := ctx.CreateCQ(verbs.CQConfig{Entries: 8})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		q, err := pd.CreateQP(verbs.QPConfig{SendCQ: c, RecvCQ: c, Caps: qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: 2, RecvSGE: 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		gids, _ := ctx.GIDs(1)
		g := gids[len(gids)-1]
		path := qp.Path{SGIDIndex: uint8(g.Index), DGID: g.GID, Global: true, DestNum: q.Num(), MTU: qp.MTU1024}
		if err := path.Connect(q); err != nil {
			t.Fatal(err)
		}
		_, _ = q.PostSend([]qp.SendWR{{Opcode: qp.Send}})
		_ = c.Arm(false)
		for ; len(stores) >= 8; stores = stores[8:] {
			off, n := int(binary.LittleEndian.Uint16(stores)), int(stores[2])
			copy(m.record[stores[3]%5:], stores[4:7])
			if at := int(stores[7]) * 8; at+8 <= len(m.sq) {
				copy(m.sq[at:], stores[:8])
			}
			for page := range pages {
				m.Device.Rung(page, off, n)
			}
			if stores[3]&0x80 != 0 {
				_, _ = q.PostSend([]qp.SendWR{{Opcode: qp.Send}})
				_ = c.Arm(false)
			}
		}
	})
}

// pageNoter keeps the pages that were rung.
type pageNoter struct {
	*meddler
	pages map[int64]bool
}

func (p *pageNoter) Rung(page int64, off, n int) {
	p.pages[page] = true
	p.meddler.Rung(page, off, n)
}
