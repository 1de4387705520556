//go:build linux

package mlx5dev_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// meddler changes what the provider wrote before the model hears of it.
type meddler struct {
	*mlx5dev.Device
	change func(sq, record []byte)
	sq     []byte
	record []byte
	pages  map[int64]bool // that were rung
}

func (m *meddler) Rung(page int64, off, n int) {
	m.pages[page] = true
	if m.change != nil && off >= 0x800 {
		m.change(m.sq, m.record)
		m.change = nil
	}
	m.Device.Rung(page, off, n)
}

func at(addr uint64, n int) []byte {
	p := uintptr(addr)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n)
}

// system notes where queue pairs have their rings.
func (m *meddler) system() *uverbs.System {
	s := m.System()
	below := s.Ioctl
	s.Ioctl = func(fd int, page []byte) syscall.Errno {
		if c, err := uverbs.Decode(page); err == nil && c.Op == "create queue pair" {
			in := c.Attr("UHW_IN").Bytes
			u32 := func(off int) int { return int(binary.NativeEndian.Uint32(in[off:])) }
			recv := u32(20) << u32(24)
			m.sq = at(binary.NativeEndian.Uint64(in)+uint64(recv), u32(16)*64)
			m.record = at(binary.NativeEndian.Uint64(in[8:]), 8)
		}
		return below(fd, page)
	}
	return s
}

// newLoop makes a model and on it, by the provider, a queue pair connected to itself.
// done closes everything.
func newLoop(t *testing.T) (m *meddler, q qp.QP, c cq.CQ, done func() error) {
	t.Helper()
	f := sim.NewFabric(sim.Config{})
	hw, err := f.NewDevice("mlx5_0", mlx5dev.SimConfig())
	if err != nil {
		t.Fatal(err)
	}
	m = &meddler{Device: mlx5dev.New(hw, mlx5dev.Config{}), pages: map[int64]bool{}}
	ctx, err := mlx5.NewObserved(m.system(), m.Node(), m).Open()
	if err != nil {
		t.Fatal(err)
	}
	pd, err := ctx.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	c, err = ctx.CreateCQ(verbs.CQConfig{Entries: 8})
	if err != nil {
		t.Fatal(err)
	}
	q, err = pd.CreateQP(verbs.QPConfig{SendCQ: c, RecvCQ: c, Caps: qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: 2, RecvSGE: 1}})
	if err != nil {
		t.Fatal(err)
	}
	gids, err := ctx.GIDs(1)
	if err != nil {
		t.Fatal(err)
	}
	g := gids[len(gids)-1]
	path := qp.Path{SGIDIndex: uint8(g.Index), DGID: g.GID, Global: true, DestNum: q.Num(), MTU: qp.MTU1024}
	if err := path.Connect(q); err != nil {
		t.Fatal(err)
	}
	return m, q, c, func() error { return errors.Join(q.Close(), c.Close(), pd.Close(), ctx.Close(), f.Close()) }
}

// A request, counter or doorbell that breaks a rule stops the queue pair with an
// error completion and is explained; nothing of it reaches the peer.
func TestBrokenRules(t *testing.T) {
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	for rule, change := range map[string]func(sq, record []byte){
		"opcode 0x7f is not known": func(sq, _ []byte) { sq[3] = 0x7f },
		"qp number is 0x":          func(sq, _ []byte) { sq[5] ^= 1 },
		"wqe index is 9":           func(sq, _ []byte) { sq[2] = 9 },
		"doorbell is of the request that ends at block 2, the record says 3": func(_, record []byte) { record[7] = 3 },
		"send counter of the record is 200":                                  func(_, record []byte) { record[7] = 200 },
		"segment of length 0, which means 2^31":                              func(sq, _ []byte) { clear(sq[16:20]) },
		"BlueFlame copy differs from the ring at byte 40":                    func(sq, _ []byte) { sq[40] ^= 1 },
	} {
		m, q, c, done := newLoop(t)
		m.change = change
		wrs := []qp.SendWR{{ID: 7, Opcode: qp.Send, SGEs: []qp.SGE{{Addr: 1 << 20, Length: 4, LKey: 1}}}, {ID: 8, Opcode: qp.Send}}
		if strings.HasPrefix(rule, "BlueFlame") { // one request alone is copied
			wrs = wrs[:1]
		}
		if n, err := q.PostSend(wrs); n != len(wrs) || err != nil {
			t.Fatal(n, err)
		}
		faults := m.Faults()
		if len(faults) == 0 || !strings.Contains(faults[0].Error(), rule) {
			t.Errorf("%s: faults %v", rule, faults)
		}
		var w [4]cq.Completion
		if n, err := c.Poll(w[:]); n != 1 || err != nil || w[0].ID != 7 || w[0].Status != cq.LocalQPOperationError {
			t.Errorf("%s: %d completions %+v, %v", rule, n, w[0], err)
		}
		if q.State() != qp.Err {
			t.Errorf("%s: state %v", rule, q.State())
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
}
