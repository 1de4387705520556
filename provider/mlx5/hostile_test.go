//go:build linux

package mlx5_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/internal/kdevtest"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// answers are the parts of a kernel's answers that FuzzAnswers changes.
var answers = []struct{ op, attr string }{
	{"open context", "UHW_OUT"}, {"open context", "NUM_COMP_VECTORS"}, {"query device", "CORE_OUT"}, {"query port", "RESP"},
	{"allocate protection domain", "UHW_OUT"}, {"create completion queue", "UHW_OUT"}, {"create completion queue", "RESP_CQE"},
	{"create shared receive queue", "UHW_OUT"}, {"create queue pair", "UHW_OUT"}, {"create queue pair", "RESP_QP_NUM"},
	{"allocate UAR", "MMAP_OFFSET"}, {"allocate UAR", "MMAP_LENGTH"}, {"allocate UAR", "PAGE_ID"},
}

// Whatever a driver answers, opening and creating neither panic nor hang; they end
// with an error or with objects that can be closed, and nothing is left.
func FuzzAnswers(f *testing.F) {
	if !mmio.HasBarriers {
		f.Skip("no barriers for device memory on this processor")
	}
	for off := range byte(72) { // each byte of the context's answer
		f.Add([]byte{0, off, 0xff}, off%2 == 0)
		f.Add([]byte{0, off, 0}, off%2 != 0)
	}
	f.Add([]byte{0, 4, 1, 0, 5, 0}, true)                                                      // registers of one byte
	f.Add([]byte{0, 8, 0xff, 0, 9, 0xff, 0, 10, 0xff, 0, 11, 0xff}, true)                      // more registers than there can be
	f.Add([]byte{0, 60, 0xff, 0, 61, 0xff, 0, 62, 0xff, 0, 63, 0xff}, true)                    // and on a page
	f.Add([]byte{8, 0, 0xff, 8, 1, 0xff, 8, 2, 0xff, 8, 3, 0xff}, true)                        // a register that is not there
	f.Add([]byte{0, 8, 0}, true)                                                               // registers at once, but none
	f.Add([]byte{10, 0, 1}, false)                                                             // an offset that cannot be mapped
	f.Add([]byte{11, 0, 1, 11, 1, 0, 12, 0, 0xff, 12, 1, 0xff, 12, 2, 0xff, 12, 3, 0}, false)  // a short page
	f.Add([]byte{2, 0, 0xff, 2, 80, 0xff, 3, 0, 0xff, 5, 0, 0xff, 6, 0, 0xff, 7, 0, 9}, false) // limits and numbers
	f.Fuzz(func(t *testing.T, patches []byte, atOnce bool) {
		fabric := sim.NewFabric(sim.Config{})
		defer fabric.Close()
		hw, err := fabric.NewDevice("mlx5_0", mlx5dev.SimConfig())
		must(t, err)
		cfg := mlx5dev.Config{}
		if atOnce {
			cfg.BFRegs = 16
		}
		m := mlx5dev.New(hw, cfg)
		s := m.System()
		below := s.Ioctl
		s.Ioctl = func(fd int, page []byte) syscall.Errno {
			errno := below(fd, page)
			c, err := uverbs.Decode(page)
			if err != nil || errno != 0 {
				return errno
			}
			for p := patches; len(p) >= 3; p = p[3:] {
				if k := answers[int(p[0])%len(answers)]; k.op == c.Op {
					if a := c.Attr(k.attr); a != nil && len(a.Bytes) > 0 {
						a.Bytes[int(p[1])%len(a.Bytes)] = p[2]
					}
				}
			}
			return errno
		}
		maps, fds := mmio.Live(), kdevtest.OpenFDs(t)
		created(t, mlx5.NewObserved(s, m.Node(), m))
		if n := mmio.Live(); n != maps {
			t.Errorf("%d mappings, %d before", n, maps)
		}
		if n := kdevtest.OpenFDs(t); n != fds {
			t.Errorf("%d descriptors, %d before", n, fds)
		}
	})
}

// created makes one of everything as far as it goes, and closes it again.
func created(t *testing.T, d verbs.Device) {
	var open []interface{ Close() error }
	defer func() {
		for i := len(open) - 1; i >= 0; i-- {
			if err := open[i].Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}()
	ctx, err := d.Open()
	if err != nil {
		return
	}
	open = append(open, ctx)
	pd, err := ctx.AllocPD()
	if err != nil {
		return
	}
	open = append(open, pd)
	c, err := ctx.CreateCQ(verbs.CQConfig{Entries: 10})
	if err != nil {
		return
	}
	open = append(open, c)
	srq, err := pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 4, RecvSGE: 1}})
	if err == nil {
		open = append(open, srq)
	}
	for range 2 {
		q, err := pd.CreateQP(verbs.QPConfig{SendCQ: c, RecvCQ: c, SRQ: srq, Caps: qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: 1, RecvSGE: 1, Inline: 32}})
		if err != nil {
			break
		}
		open = append(open, q)
		_ = q.Modify(&qp.Attr{State: qp.Init, Port: 1}, qp.MaskState|qp.MaskPKeyIndex|qp.MaskPort|qp.MaskAccess)
	}
	if n, _ := c.Poll(make([]cq.Completion, 4)); n != 0 {
		t.Errorf("%d completions of nothing", n)
	}
}

// answering changes bytes of the context's answer.
func answering(m *mlx5dev.Device, off int, b ...byte) *uverbs.System {
	s := m.System()
	below := s.Ioctl
	s.Ioctl = func(fd int, page []byte) syscall.Errno {
		errno := below(fd, page)
		if c, err := uverbs.Decode(page); err == nil && errno == 0 && c.Op == "open context" {
			copy(c.Attr("UHW_OUT").Bytes[off:], b)
		}
		return errno
	}
	return s
}

// Registers that cannot be where the driver says are refused, with the number.
func TestStrangeRegisters(t *testing.T) {
	noLeaks(t)
	for want, b := range map[string][]byte{
		"registers of 24 bytes": {24, 0, 0, 0}, "registers of 1024 bytes": {0, 4, 0, 0}, // the fourth would end past its UAR
		"registers of 4294967295 bytes": {0xff, 0xff, 0xff, 0xff},
		"4294967040 doorbell registers": {0, 2, 0, 0, 0, 0xff, 0xff, 0xff}, // little-endian: bf_reg_size and tot_bfregs
	} {
		for _, cfg := range []mlx5dev.Config{{}, {BFRegs: 16}} {
			m, _ := model(t, cfg)
			if _, err := mlx5.NewObserved(answering(m, 4, b...), m.Node(), m).Open(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "of another kind") {
				t.Errorf("%v: error %v", b, err)
			}
		}
	}
}

// A NIC without BlueFlame has registers of no size, and one place for all of them.
func TestNoRegisterSize(t *testing.T) {
	for _, size := range []byte{0, 1} {
		for _, cfg := range []mlx5dev.Config{{}, {BFRegs: 16}} {
			m, _ := model(t, cfg)
			p := kdevtest.Connect(t, mlx5.NewObserved(answering(m, 4, size, 0, 0, 0), m.Node(), m), kdevtest.Config{})
			p.B.Recv(t, 1, p.B.SGE(0, 64))
			p.A.Send(t, qp.SendWR{ID: 2, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 64)}})
			p.A.Want(t, cq.Completion{ID: 2, Opcode: cq.Send})
			p.B.Want(t, cq.Completion{ID: 1, Opcode: cq.Recv, ByteLen: 64})
			for _, f := range m.Faults() {
				t.Error(f)
			}
		}
	}
}
