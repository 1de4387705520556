//go:build linux

package mlx5_test

import (
	"sync"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/provider/internal/kdevtest"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Queue pairs on several goroutines ring at once: on registers of their own, on
// one that all share since the kernel gives no more, and on those that an older
// driver chose. The model sees every doorbell, and none that is torn.
func TestDoorbellsAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		model mlx5dev.Config
		pages int // register pages that the kernel gives
	}{"own": {pages: 100}, "shared": {pages: 1}, "chosen": {model: mlx5dev.Config{BFRegs: 16}}} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			m, _ := model(t, tt.model)
			s := m.System()
			below := s.Ioctl
			given := 0
			s.Ioctl = func(fd int, page []byte) syscall.Errno {
				if c, err := uverbs.Decode(page); err == nil && c.Op == "allocate UAR" {
					if given++; given > tt.pages {
						return syscall.ENOMEM
					}
				}
				return below(fd, page)
			}
			p := kdevtest.Connect(t, mlx5.NewObserved(s, m.Node(), m), kdevtest.Config{})
			var wg sync.WaitGroup
			for range 6 {
				e := newWriter(t, p)
				wg.Go(func() {
					var buf [4]cq.Completion
					w := qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}, RemoteAddr: p.B.MR.Addr, RKey: p.B.MR.RKey}
					for i := range 300 {
						w.ID = uint64(i)
						if n, err := e.QP.PostSend([]qp.SendWR{w}); n != 1 || err != nil {
							t.Errorf("post: %d, %v", n, err)
							return
						}
						for {
							n, err := e.CQ.Poll(buf[:])
							if err != nil || n > 0 && (buf[0].Status != cq.Success || buf[0].ID != uint64(i)) {
								t.Errorf("completion %+v, %v", buf[0], err)
								return
							}
							if n > 0 {
								break
							}
						}
					}
				})
			}
			wg.Wait()
			for _, f := range m.Faults() {
				t.Error(f)
			}
		})
	}
}

// newWriter makes a queue pair connected with one that only answers.
func newWriter(t *testing.T, p *kdevtest.Pair) *kdevtest.End {
	t.Helper()
	two := &kdevtest.Pair{Ctx: p.Ctx, PD: p.PD}
	for _, e := range []*kdevtest.End{&two.A, &two.B} {
		var err error
		e.CQ, err = p.Ctx.CreateCQ(verbs.CQConfig{Entries: 16})
		must(t, err)
		closeLater(t, e.CQ)
		e.QP, err = p.PD.CreateQP(verbs.QPConfig{SendCQ: e.CQ, RecvCQ: e.CQ, Caps: qp.Caps{SendWR: 4, RecvWR: 1, SendSGE: 1, RecvSGE: 1}})
		must(t, err)
		closeLater(t, e.QP)
	}
	two.Join(t, nil)
	return &two.A
}
