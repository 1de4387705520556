//go:build linux

package mlx5_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/verbs"
)

// Queue pairs come, send to themselves and go, while others do, their completion
// queue is polled, armed, waited for and resized, and all is asked for; then the
// device is removed under it or not. Everything ends, and nothing is left.
func TestHammer(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg    mlx5dev.Config
		remove bool
	}{
		"today": {}, "registers at once": {cfg: mlx5dev.Config{BFRegs: 16}}, "by number": {cfg: mlx5dev.Config{CQEVersion0: true}},
		"removed": {remove: true}, "removed, registers at once": {mlx5dev.Config{BFRegs: 16}, true},
	} {
		t.Run(name, func(t *testing.T) { hammer(t, tt.cfg, tt.remove) })
	}
}

func hammer(t *testing.T, cfg mlx5dev.Config, remove bool) {
	noLeaks(t)
	m, hw := model(t, cfg)
	ctx, err := mlx5.NewObserved(m.System(), m.Node(), m).Open()
	must(t, err)
	pd, err := ctx.AllocPD()
	must(t, err)
	c, err := ctx.CreateCQ(verbs.CQConfig{Entries: 256})
	must(t, err)
	srq, err := pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 64, RecvSGE: 1}})
	must(t, err)
	mem, err := mmio.Anonymous(4096)
	must(t, err)
	defer mem.Close()
	region, err := pd.Register(mem.Bytes(), mr.LocalWrite|mr.RemoteWrite|mr.RemoteRead)
	must(t, err)
	gids, err := ctx.GIDs(1)
	must(t, err)

	var workers, others sync.WaitGroup
	var completed atomic.Int64
	stop, end := context.WithCancel(context.Background())
	const lives, posts = 30, 20
	for w := range 4 {
		rng := rand.New(rand.NewPCG(1, uint64(w)))
		workers.Go(func() {
			for life := 0; life < lives || !remove && completed.Load() == 0 && !t.Failed(); life++ {
				if remove && w == 0 && life == lives/2 {
					hw.Remove()
				}
				cfg := verbs.QPConfig{SendCQ: c, RecvCQ: c, Caps: qp.Caps{SendWR: 8, RecvWR: 8, SendSGE: 1, RecvSGE: 1, Inline: 64}}
				if w%2 == 1 {
					cfg.SRQ = srq
				}
				err := live(pd, cfg, region, gids[len(gids)-1], rng, posts)
				if err != nil && (!remove || !errors.Is(err, verbs.ErrDeviceLost)) {
					t.Errorf("worker %d, life %d: %v", w, life, err)
					return
				}
			}
		})
	}
	others.Go(func() { // owns the completion queue
		rng := rand.New(rand.NewPCG(2, 0))
		dst := make([]cq.Completion, 16)
		for stop.Err() == nil {
			n, err := c.Poll(dst)
			if err != nil && !(remove && errors.Is(err, verbs.ErrDeviceLost)) {
				t.Errorf("poll: %v", err)
				return
			}
			completed.Add(int64(n))
			switch rng.IntN(8) {
			case 0:
				if err := c.Resize(200 + rng.IntN(400)); err != nil && !remove {
					t.Errorf("resize: %v", err)
					return
				}
			case 1:
				_ = c.Arm(rng.IntN(2) == 0)
				wait, cancel := context.WithTimeout(stop, time.Millisecond)
				_ = c.Wait(wait)
				cancel()
			}
		}
	})
	others.Go(func() {
		for stop.Err() == nil {
			c.Wake()
			_, _ = ctx.Attr()
			_, _ = srq.Query()
			_ = srq.Arm(8)
		}
	})
	others.Go(func() {
		for stop.Err() == nil {
			_, _ = srq.PostRecv([]qp.RecvWR{{ID: 1, SGEs: []qp.SGE{{Addr: region.Addr, Length: 64, LKey: region.LKey}}}})
		}
	})
	others.Go(func() {
		for {
			if _, err := ctx.NextEvent(stop); err != nil {
				return
			}
		}
	})
	workers.Wait()
	end()
	others.Wait()
	must(t, srq.Close())
	must(t, c.Close())
	must(t, pd.Deregister(region))
	must(t, pd.Close())
	must(t, ctx.Close())
	for _, f := range m.Faults() {
		t.Error(f)
	}
}

// live makes a queue pair that is its own peer, posts, and closes it.
func live(pd verbs.PD, cfg verbs.QPConfig, region mr.Region, g verbs.GIDEntry, rng *rand.Rand, posts int) (err error) {
	q, err := pd.CreateQP(cfg)
	if err != nil {
		return err
	}
	defer func() {
		if e := q.Close(); err == nil {
			err = e
		}
	}()
	path := qp.Path{SGIDIndex: uint8(g.Index), DGID: g.GID, Global: true, DestNum: q.Num(), MTU: qp.MTU1024, Access: mr.RemoteWrite | mr.RemoteRead,
		MaxReads: 4, MaxDestReads: 4}
	if err := path.Connect(q); err != nil {
		return err
	}
	var recvs sync.WaitGroup
	if cfg.SRQ == nil {
		recvs.Go(func() { // beside PostSend
			for range posts {
				_, _ = q.PostRecv([]qp.RecvWR{{ID: 2, SGEs: []qp.SGE{{Addr: region.Addr, Length: 64, LKey: region.LKey}}}})
			}
		})
	}
	sge := []qp.SGE{{Addr: region.Addr + 64, Length: 64, LKey: region.LKey}}
	for range posts {
		wr := []qp.SendWR{
			{ID: 3, Opcode: qp.Write, Flags: qp.Signaled, SGEs: sge, RemoteAddr: region.Addr + 128, RKey: region.RKey},
			{ID: 4, Opcode: qp.Send, Flags: qp.Signaled | qp.Inline, Inline: make([]byte, 32)},
			{ID: 5, Opcode: qp.Read, Flags: qp.Signaled, SGEs: sge, RemoteAddr: region.Addr + 256, RKey: region.RKey},
		}[rng.IntN(3):]
		_, _ = q.PostSend(wr[:1])
	}
	recvs.Wait()
	if rng.IntN(2) == 0 {
		err = q.Modify(&qp.Attr{State: qp.Err}, qp.MaskState)
	}
	return err
}
