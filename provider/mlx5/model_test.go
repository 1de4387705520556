//go:build linux

package mlx5_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/verbs"
)

// patience is how long a test waits for a completion before it fails. It is not a
// measurement.
const patience = 60 * time.Second

// device makes a model of a NIC. When the test ends, nothing that the provider told
// it may have broken a rule.
func device(t testing.TB, cfg mlx5dev.Config) verbs.Device {
	t.Helper()
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	f := sim.NewFabric(sim.Config{})
	hw, err := f.NewDevice("mlx5_0", mlx5dev.SimConfig())
	must(t, err)
	m := mlx5dev.New(hw, cfg)
	t.Cleanup(func() {
		for _, f := range m.Faults() {
			t.Error(f)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return mlx5.NewObserved(m.System(), m.Node(), m)
}

// noLeaks fails the test if descriptors or mappings are left at its end.
func noLeaks(t testing.TB) {
	t.Helper()
	fds, maps := openFDs(t), mmio.Live()
	t.Cleanup(func() {
		if n := openFDs(t); n != fds {
			t.Errorf("%d descriptors open at the end, %d at the start", n, fds)
		}
		if n := mmio.Live(); n != maps {
			t.Errorf("%d mappings at the end, %d at the start", n, maps)
		}
	})
}

func openFDs(t testing.TB) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

// end is one end of a connection, with memory of its own.
type end struct {
	qp  qp.QP
	cq  cq.CQ
	mem []byte
	mr  mr.Region
	got []cq.Completion // polled, not yet taken
}

// pair is two connected queue pairs of one device.
type pair struct {
	ctx  verbs.Context
	pd   verbs.PD
	a, b end
}

type pairConfig struct {
	caps    qp.Caps
	memory  int // bytes a side
	sigAll  bool
	entries int
	path    func(*qp.Path)
	model   mlx5dev.Config
}

const allAccess = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic

// connect makes a pair in RTS; everything is closed at the end of the test, and
// nothing may be left.
func connect(t testing.TB, cfg pairConfig) *pair {
	t.Helper()
	noLeaks(t)
	return connectOn(t, device(t, cfg.model), cfg)
}

func connectOn(t testing.TB, dev verbs.Device, cfg pairConfig) *pair {
	t.Helper()
	if cfg.caps == (qp.Caps{}) {
		cfg.caps = qp.Caps{SendWR: 16, RecvWR: 16, SendSGE: 4, RecvSGE: 4, Inline: 64}
	}
	cfg.memory, cfg.entries = max(cfg.memory, 64<<10), max(cfg.entries, 128)
	ctx, err := dev.Open()
	must(t, err)
	closeLater(t, ctx)
	pd, err := ctx.AllocPD()
	must(t, err)
	closeLater(t, pd)
	p := &pair{ctx: ctx, pd: pd}
	for _, e := range []*end{&p.a, &p.b} {
		m, err := mmio.Anonymous(cfg.memory)
		must(t, err)
		closeLater(t, m)
		e.mem = m.Bytes()
		e.mr, err = pd.Register(e.mem, allAccess)
		must(t, err)
		t.Cleanup(func() {
			if err := pd.Deregister(e.mr); err != nil {
				t.Error(err)
			}
		})
		e.cq, err = ctx.CreateCQ(verbs.CQConfig{Entries: cfg.entries})
		must(t, err)
		closeLater(t, e.cq)
		e.qp, err = pd.CreateQP(verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, Caps: cfg.caps, SigAll: cfg.sigAll})
		must(t, err)
		closeLater(t, e.qp)
	}
	p.join(t, cfg.path)
	return p
}

// join brings both ends to RTS.
func (p *pair) join(t testing.TB, change func(*qp.Path)) {
	t.Helper()
	port, err := p.ctx.Port(1)
	must(t, err)
	gid := lastGID(t, p.ctx)
	for i, e := range []*end{&p.a, &p.b} {
		peer := []*end{&p.b, &p.a}[i]
		path := qp.Path{
			SGIDIndex: uint8(gid.Index), DGID: gid.GID, Global: true, Access: allAccess, DestNum: peer.qp.Num(),
			SendPSN: qp.PSN(0xfffffe + i), RecvPSN: qp.PSN(0xfffffe + 1 - i), MTU: port.ActiveMTU, MaxReads: 16, MaxDestReads: 16,
		}
		if change != nil {
			change(&path)
		}
		must(t, path.Connect(e.qp))
		if e.qp.State() != qp.RTS {
			t.Fatalf("state %v after Connect", e.qp.State())
		}
	}
}

// lastGID is the highest GID of port 1: index 0 is the link-local one.
func lastGID(t testing.TB, ctx verbs.Context) verbs.GIDEntry {
	t.Helper()
	gids, err := ctx.GIDs(1)
	must(t, err)
	if len(gids) == 0 {
		t.Fatal("port 1 has no GID")
	}
	return gids[len(gids)-1]
}

// sge names n bytes of the end's memory.
func (e *end) sge(off, n int) qp.SGE {
	return qp.SGE{Addr: e.mr.Addr + uint64(off), Length: uint32(n), LKey: e.mr.LKey}
}

func (e *end) send(t testing.TB, wrs ...qp.SendWR) {
	t.Helper()
	if n, err := e.qp.PostSend(wrs); n != len(wrs) || err != nil {
		t.Fatalf("posted %d of %d sends: %v", n, len(wrs), err)
	}
}

func (e *end) recv(t testing.TB, id uint64, sges ...qp.SGE) {
	t.Helper()
	if n, err := e.qp.PostRecv([]qp.RecvWR{{ID: id, SGEs: sges}}); n != 1 || err != nil {
		t.Fatalf("posted %d receives: %v", n, err)
	}
}

// next takes the next completion: it arms, polls once more, and waits.
func (e *end) next(t testing.TB) cq.Completion {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var buf [8]cq.Completion
	for armed := false; ; {
		if len(e.got) > 0 {
			c := e.got[0]
			e.got = e.got[1:]
			return c
		}
		n, err := e.cq.Poll(buf[:])
		must(t, err)
		e.got = append(e.got, buf[:n]...)
		switch {
		case n > 0:
		case !armed:
			must(t, e.cq.Arm(false))
			armed = true
		default:
			if err := e.cq.Wait(ctx); err != nil {
				t.Fatalf("waiting for a completion: %v", err)
			}
			armed = false
		}
	}
}

// want takes the next completion and checks the fields that matter for its status.
func (e *end) want(t testing.TB, want cq.Completion) {
	t.Helper()
	want.QPNum = e.qp.Num()
	got := e.next(t)
	if got.Status != cq.Success && want.Status == got.Status {
		want.Opcode, want.ByteLen, want.VendorErr, want.Flags = got.Opcode, got.ByteLen, got.VendorErr, got.Flags
	}
	if want.Opcode.IsRecv() {
		want.Flags |= got.Flags & cq.HasGRH
	} else { // of no meaning on the send side
		want.ByteLen, want.Flags, want.Imm = got.ByteLen, got.Flags, got.Imm
	}
	if got != want {
		t.Fatalf("completion is\n%+v, want\n%+v", got, want)
	}
}

// empty checks that no completion is there.
func (e *end) empty(t testing.TB) {
	t.Helper()
	var buf [1]cq.Completion
	if n, err := e.cq.Poll(buf[:]); n != 0 || err != nil || len(e.got) != 0 {
		t.Fatalf("unexpected completion %+v, error %v", buf, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// closeLater closes at the end of the test what the test has not closed itself.
func closeLater(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, cq.ErrClosed) && !errors.Is(err, qp.ErrClosed) && !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
}
