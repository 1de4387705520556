package sim_test

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

func TestOpenByName(t *testing.T) {
	o := options{}
	o.fill()
	open := func(name string) verbs.Device { return must[verbs.Device](t)(sim.Open(name)) }
	if open("sim:shared") != open("sim:shared") {
		t.Error("one name, two devices")
	}
	if info := open("sim:shared").Info(); info.Name != "sim:shared" || info.Provider != "sim" || info.Ports != 1 {
		t.Errorf("info %+v", info)
	}
	seen := map[verbs.GID]bool{}
	ends := []*end{newEnd(t, open("sim:"), &o), newEnd(t, open("sim:"), &o), newEnd(t, open("sim:shared"), &o), newEnd(t, open("sim:shared"), &o)}
	for i, e := range ends {
		gids := must[[]verbs.GIDEntry](t)(e.ctx.GIDs(1))
		if len(gids) != 2 || !gids[0].GID.IsLinkLocal() || !gids[1].GID.IsIPv4() || gids[1].Type != verbs.GIDRoCEv2 {
			t.Errorf("device %d: GIDs %v", i, gids)
		}
		if seen[gids[1].GID] != (i == 3) {
			t.Errorf("device %d: GID %v, seen before: %v", i, gids[1].GID, seen[gids[1].GID])
		}
		seen[gids[1].GID] = true
	}
	// They all reach one another, even two contexts of one NIC.
	for _, p := range [][2]int{{0, 1}, {2, 3}} {
		a, b := ends[p[0]], ends[p[1]]
		connect(a, b)
		b.recv(1, 0, 64)
		a.send(qp.SendWR{Opcode: qp.Send, SGEs: a.sge(0, 8)})
		wantStatus(t, b.next(), 1, cq.Success)
	}
	for _, e := range ends {
		e.close()
	}
	for _, name := range []string{"", "sim", "rxe0", "roce:eth0"} {
		if _, err := sim.Open(name); !errors.Is(err, verbs.ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	f := sim.NewFabric(sim.Config{})
	must[*sim.Device](t)(f.NewDevice("x", sim.DeviceConfig{}))
	if _, err := f.NewDevice("x", sim.DeviceConfig{}); err == nil {
		t.Error("a name twice on one fabric")
	}
	check(t, f.Close())
	if _, err := f.NewDevice("y", sim.DeviceConfig{}); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("new device on a closed fabric: %v", err)
	}
}

// TestPostErrors: what is wrong with a request is told by itself, and what came
// before it is posted.
func TestPostErrors(t *testing.T) {
	dev := portMTU(qp.MTU4096)
	dev.Ports[0].MaxMessage = 4096
	a, b, _ := newPair(t, sim.Config{}, options{caps: qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: 2, RecvSGE: 2, Inline: 16}, devA: dev})
	good := qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)}
	sge := a.sge(0, 8)[0]
	for _, c := range []struct {
		want error
		wr   qp.SendWR
	}{
		{qp.ErrTooManySGEs, qp.SendWR{Opcode: qp.Send, SGEs: []qp.SGE{sge, sge, sge}}},
		{qp.ErrInlineTooLong, qp.SendWR{Opcode: qp.Send, Flags: qp.Inline, Inline: make([]byte, 17)}},
		{qp.ErrInlineUse, qp.SendWR{Opcode: qp.Read, Flags: qp.Inline}},
		{qp.ErrOpcode, qp.SendWR{Opcode: 99}},
		{qp.ErrAtomic, qp.SendWR{Opcode: qp.FetchAdd, SGEs: a.sge(0, 4)}},
		{qp.ErrMessageTooLong, qp.SendWR{Opcode: qp.Send, SGEs: a.sge(0, 4097)}},
	} {
		n, err := a.qp.PostSend([]qp.SendWR{good, c.wr, good})
		if n != 1 || !errors.Is(err, c.want) {
			t.Errorf("%v: posted %d, %v", c.want, n, err)
		}
		wantStatus(t, a.next(), 0, cq.Success)
		a.none()
	}
	n, err := a.qp.PostSend([]qp.SendWR{good, good, good, good, good})
	if n != 4 || !errors.Is(err, qp.ErrQueueFull) {
		t.Errorf("fifth of four: posted %d, %v", n, err)
	}
	a.nextN(4)
	// Of all these only the full queue is worth another try.
	if n, err := a.qp.PostSend([]qp.SendWR{good}); n != 1 || err != nil {
		t.Errorf("again, with room: posted %d, %v", n, err)
	}
	a.nextN(1)
	n, err = a.qp.PostRecv(make([]qp.RecvWR, 5))
	if n != 4 || !errors.Is(err, qp.ErrQueueFull) {
		t.Errorf("fifth receive of four: posted %d, %v", n, err)
	}
	if n, err = b.qp.PostRecv([]qp.RecvWR{{SGEs: []qp.SGE{sge, sge, sge}}}); n != 0 || !errors.Is(err, qp.ErrTooManySGEs) {
		t.Errorf("receive of 3 segments: %d, %v", n, err)
	}
}
