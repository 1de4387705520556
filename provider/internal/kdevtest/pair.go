//go:build linux

package kdevtest

import (
	"context"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// End is one end of a connection, with memory of its own.
type End struct {
	QP  qp.QP
	CQ  cq.CQ
	Mem []byte
	MR  mr.Region
	got []cq.Completion // polled, not yet taken
}

// Pair is two connected queue pairs of one device.
type Pair struct {
	Ctx  verbs.Context
	PD   verbs.PD
	A, B End
}

// Config says what a pair is like; zero fields have defaults.
type Config struct {
	Caps   qp.Caps
	Memory int            // bytes a side; 64 KiB or more
	Path   func(*qp.Path) // changes the path before the connection
}

// allAccess is every access that a region or a queue pair can grant to the peer.
const allAccess = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic

// Connect opens the device and makes a pair in RTS; everything is closed at the
// end of the test.
func Connect(t testing.TB, dev verbs.Device, cfg Config) *Pair {
	t.Helper()
	if cfg.Caps == (qp.Caps{}) {
		cfg.Caps = qp.Caps{SendWR: 16, RecvWR: 16, SendSGE: 4, RecvSGE: 4, Inline: 64}
	}
	cfg.Memory = max(cfg.Memory, 64<<10)
	ctx, err := dev.Open()
	Must(t, err)
	CloseLater(t, ctx)
	pd, err := ctx.AllocPD()
	Must(t, err)
	CloseLater(t, pd)
	p := &Pair{Ctx: ctx, PD: pd}
	for _, e := range []*End{&p.A, &p.B} {
		m, err := mmio.Anonymous(cfg.Memory)
		Must(t, err)
		CloseLater(t, m)
		e.Mem = m.Bytes()
		e.MR, err = pd.Register(e.Mem, allAccess)
		Must(t, err)
		t.Cleanup(func() {
			if err := pd.Deregister(e.MR); err != nil {
				t.Error(err)
			}
		})
		e.CQ, err = ctx.CreateCQ(verbs.CQConfig{Entries: 128})
		Must(t, err)
		CloseLater(t, e.CQ)
		e.QP, err = pd.CreateQP(verbs.QPConfig{SendCQ: e.CQ, RecvCQ: e.CQ, Caps: cfg.Caps})
		Must(t, err)
		CloseLater(t, e.QP)
	}
	p.Join(t, cfg.Path)
	return p
}

// Join brings both ends to RTS; change may alter the paths.
func (p *Pair) Join(t testing.TB, change func(*qp.Path)) {
	t.Helper()
	port, err := p.Ctx.Port(1)
	Must(t, err)
	gid := lastGID(t, p.Ctx)
	for i, e := range []*End{&p.A, &p.B} {
		peer := []*End{&p.B, &p.A}[i]
		path := qp.Path{
			SGIDIndex: uint8(gid.Index), DGID: gid.GID, Global: true, Access: allAccess, DestNum: peer.QP.Num(),
			SendPSN: qp.PSN(0xfffffe + i), RecvPSN: qp.PSN(0xfffffe + 1 - i), MTU: port.ActiveMTU, MaxReads: 16, MaxDestReads: 16,
		}
		if change != nil {
			change(&path)
		}
		Must(t, path.Connect(e.QP))
		if e.QP.State() != qp.RTS {
			t.Fatalf("state %v after Connect", e.QP.State())
		}
	}
}

// lastGID is the highest GID of port 1: index 0 is the link-local one.
func lastGID(t testing.TB, ctx verbs.Context) verbs.GIDEntry {
	t.Helper()
	gids, err := ctx.GIDs(1)
	Must(t, err)
	if len(gids) == 0 {
		t.Fatal("port 1 has no GID")
	}
	return gids[len(gids)-1]
}

// SGE names n bytes of the end's memory.
func (e *End) SGE(off, n int) qp.SGE {
	return qp.SGE{Addr: e.MR.Addr + uint64(off), Length: uint32(n), LKey: e.MR.LKey}
}

// Send posts requests, all of which must be taken.
func (e *End) Send(t testing.TB, wrs ...qp.SendWR) {
	t.Helper()
	if n, err := e.QP.PostSend(wrs); n != len(wrs) || err != nil {
		t.Fatalf("posted %d of %d sends: %v", n, len(wrs), err)
	}
}

// Recv posts a receive, which must be taken.
func (e *End) Recv(t testing.TB, id uint64, sges ...qp.SGE) {
	t.Helper()
	if n, err := e.QP.PostRecv([]qp.RecvWR{{ID: id, SGEs: sges}}); n != 1 || err != nil {
		t.Fatalf("posted %d receives: %v", n, err)
	}
}

// Next takes the next completion: it arms, polls once more, and waits.
func (e *End) Next(t testing.TB) cq.Completion {
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
		n, err := e.CQ.Poll(buf[:])
		Must(t, err)
		e.got = append(e.got, buf[:n]...)
		switch {
		case n > 0:
		case !armed:
			Must(t, e.CQ.Arm(false))
			armed = true
		default:
			if err := e.CQ.Wait(ctx); err != nil {
				t.Fatalf("waiting for a completion: %v", err)
			}
			armed = false
		}
	}
}

// Want takes the next completion and checks the fields that matter for its status.
func (e *End) Want(t testing.TB, want cq.Completion) {
	t.Helper()
	want.QPNum = e.QP.Num()
	got := e.Next(t)
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

// Empty checks that no completion is there.
func (e *End) Empty(t testing.TB) {
	t.Helper()
	var buf [1]cq.Completion
	if n, err := e.CQ.Poll(buf[:]); n != 0 || err != nil || len(e.got) != 0 {
		t.Fatalf("unexpected completion %+v, error %v", buf, err)
	}
}
