//go:build linux

package mlx5_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/internal/kdevtest"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// model makes a model on a fabric of its own.
func model(t testing.TB, cfg mlx5dev.Config) (*mlx5dev.Device, *sim.Device) {
	t.Helper()
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	f := sim.NewFabric(sim.Config{})
	hw, err := f.NewDevice("mlx5_0", mlx5dev.SimConfig())
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return mlx5dev.New(hw, cfg), hw
}

// A driver of another ABI is refused, and the error names both versions.
func TestOtherABI(t *testing.T) {
	noLeaks(t)
	m, _ := model(t, mlx5dev.Config{ABI: 7})
	_, err := mlx5.NewObserved(m.System(), m.Node(), m).Open()
	if !errors.Is(err, verbs.ErrUnsupported) || !strings.Contains(err.Error(), "ABI 1") || !strings.Contains(err.Error(), "version 7") {
		t.Errorf("error %v", err)
	}
}

// A completion format that is not known is refused, and the error names both.
func TestOtherCompletionFormat(t *testing.T) {
	noLeaks(t)
	m, _ := model(t, mlx5dev.Config{})
	s := m.System()
	below := s.Ioctl
	s.Ioctl = func(fd int, page []byte) syscall.Errno {
		errno := below(fd, page)
		if c, err := uverbs.Decode(page); err == nil && c.Op == "open context" {
			c.Attr("UHW_OUT").Bytes[44] = 9 // cqe_version
		}
		return errno
	}
	_, err := mlx5.NewObserved(s, m.Node(), m).Open()
	if !errors.Is(err, verbs.ErrUnsupported) || !strings.Contains(err.Error(), "0 to 1") || !strings.Contains(err.Error(), "9") {
		t.Errorf("error %v", err)
	}
}

// Older kernels refuse longer requests for a context; the provider asks for less
// until one is taken, and works.
func TestOlderKernels(t *testing.T) {
	for _, longest := range []int{32, 24, 16} {
		noLeaks(t)
		m, _ := model(t, mlx5dev.Config{CQEVersion0: longest <= 16, BFRegs: map[bool]int{true: 16}[longest < 32]})
		s := m.System()
		below := s.Ioctl
		asked := 0
		s.Ioctl = func(fd int, page []byte) syscall.Errno {
			if c, err := uverbs.Decode(page); err == nil && c.Op == "open context" {
				asked++
				in := c.Attr("UHW_IN").Bytes
				if len(in) > longest || in[8] != 0 { // DEVX
					return syscall.EINVAL
				}
			}
			return below(fd, page)
		}
		kdevtest.Connect(t, mlx5.NewObserved(s, m.Node(), m), kdevtest.Config{})
		if want := map[int]int{32: 2, 24: 3, 16: 4}[longest]; asked != want {
			t.Errorf("up to %d bytes: asked %d times, want %d", longest, asked, want)
		}
	}
}

// Whichever request the kernel refuses, opening and creating fail with its errno
// and leave nothing behind.
func TestEveryRequestFails(t *testing.T) {
	for failing := 0; ; failing++ {
		noLeaks(t)
		m, _ := model(t, mlx5dev.Config{})
		s := m.System()
		below := s.Ioctl
		n, failed := 0, false
		s.Ioctl = func(fd int, page []byte) syscall.Errno {
			c, _ := uverbs.Decode(page)
			if strings.HasPrefix(c.Op, "de") { // destroying and giving back works
				return below(fd, page)
			}
			n++
			if n == failing+1 {
				failed = true
				return syscall.ENOMEM
			}
			return below(fd, page)
		}
		err := life(mlx5.NewObserved(s, m.Node(), m))
		if !failed {
			if err != nil {
				t.Errorf("with no failure: %v", err)
			}
			if failing < 8 {
				t.Errorf("only %d requests", failing)
			}
			return
		}
		if err != nil && !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("request %d fails: %v", failing, err)
		}
	}
}

// life makes one of everything and closes it again.
func life(d verbs.Device) (err error) {
	var open []interface{ Close() error }
	defer func() {
		for i := len(open) - 1; i >= 0; i-- {
			err = errors.Join(err, open[i].Close())
		}
	}()
	ctx, err := d.Open()
	if err != nil {
		return err
	}
	open = append(open, ctx)
	pd, err := ctx.AllocPD()
	if err != nil {
		return err
	}
	open = append(open, pd)
	c, err := ctx.CreateCQ(verbs.CQConfig{Entries: 10})
	if err != nil {
		return err
	}
	open = append(open, c)
	q, err := pd.CreateQP(verbs.QPConfig{SendCQ: c, RecvCQ: c, Caps: qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: 1, RecvSGE: 1}})
	if err != nil {
		return err
	}
	open = append(open, q)
	return q.Modify(&qp.Attr{State: qp.Init, Port: 1}, qp.MaskState|qp.MaskPKeyIndex|qp.MaskPort|qp.MaskAccess)
}

// In states that take no requests, none is posted, and nothing is stored.
func TestPostStates(t *testing.T) {
	p := rig.Connect(t, kdevtest.Config{})
	must(t, p.A.QP.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	if n, err := p.A.QP.PostRecv([]qp.RecvWR{{}}); n != 0 || err != qp.ErrState {
		t.Errorf("receive in RESET: %d, %v", n, err)
	}
	for _, bring := range []func(){
		func() {},
		func() {
			must(t, p.A.QP.Modify(&qp.Attr{State: qp.Init, Port: 1}, qp.MaskState|qp.MaskPKeyIndex|qp.MaskPort|qp.MaskAccess))
		},
	} {
		bring()
		if n, err := p.A.QP.PostSend([]qp.SendWR{{Opcode: qp.Send}}); n != 0 || err != qp.ErrState {
			t.Errorf("send in %v: %d, %v", p.A.QP.State(), n, err)
		}
	}
	p.A.Recv(t, 1, p.A.SGE(0, 8)) // from INIT on
}

// A device that goes away ends waits and polls with its loss; closing works.
func TestDeviceLost(t *testing.T) {
	m, hw := model(t, mlx5dev.Config{})
	p := kdevtest.Connect(t, mlx5.NewObserved(m.System(), m.Node(), m), kdevtest.Config{})
	hw.Remove()
	for {
		_, err := p.Ctx.NextEvent(t.Context())
		if errors.Is(err, verbs.ErrDeviceLost) {
			break
		}
		must(t, err)
	}
	if n, err := p.A.CQ.Poll(make([]cq.Completion, 1)); n != 0 || !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("poll: %d, %v", n, err)
	}
	if _, err := p.Ctx.Attr(); !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("limits: %v", err)
	}
}

// A driver that pins all memory, as the model's, refuses dmabufs and advice with
// errors that say what is missing.
func TestWithoutOnDemandPaging(t *testing.T) {
	p := rig.Connect(t, kdevtest.Config{})
	mem, err := verbs.MemoryOf(p.PD)
	must(t, err)
	if _, err := mem.RegisterDMABuf(verbs.DMABuf{FD: 1, Length: 4096, Addr: 1 << 40}, mr.LocalWrite); !errors.Is(err, verbs.ErrUnsupported) {
		t.Errorf("dmabuf: %v", err)
	}
	advise := func(key mr.LKey) error {
		return mem.Advise(mr.Prefetch, true, []qp.SGE{{Addr: p.A.SGE(0, 8).Addr, Length: 8, LKey: key}})
	}
	if err := advise(p.A.SGE(0, 8).LKey); !errors.Is(err, verbs.ErrUnsupported) || !errors.Is(err, syscall.EINVAL) {
		t.Errorf("advice: %v", err)
	}
	if err := advise(^mr.LKey(0)); !errors.Is(err, syscall.ENOENT) || errors.Is(err, verbs.ErrUnsupported) {
		t.Errorf("advice on a region that is not there: %v", err)
	}
}
