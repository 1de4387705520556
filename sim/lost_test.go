package sim_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// events takes the next n events of an end's device, by type.
func (e *end) events(n int) (out []verbs.Event) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range n {
		out = append(out, must[verbs.Event](e.t)(e.ctx.NextEvent(ctx)))
	}
	return out
}

func TestDeviceRemoved(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	o := options{path: qp.Path{AckTimeout: 4, RetryCount: 1}} // 65 us
	o.fill()
	da := must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{}))
	db := must[*sim.Device](t)(f.NewDevice("b", sim.DeviceConfig{}))
	a, b := newEnd(t, da, &o), newEnd(t, db, &o)
	connect(a, b)
	b.recv(1, 0, 64)
	waits := make(chan error, 2)
	go func() { waits <- b.cq.Wait(context.Background()) }()
	go func() {
		for {
			e, err := b.ctx.NextEvent(context.Background())
			if err != nil {
				waits <- err
				return
			}
			if e.Type != verbs.EventDeviceFatal {
				t.Errorf("event %v", e)
			}
		}
	}()
	db.Remove()
	for range 2 {
		select {
		case err := <-waits:
			if !errors.Is(err, verbs.ErrDeviceLost) {
				t.Errorf("wait ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a wait hangs on a lost device")
		}
	}
	_, e1 := b.cq.Poll(b.got[:])
	_, e2 := b.qp.PostSend([]qp.SendWR{{Opcode: qp.Send}})
	_, e3 := b.qp.PostRecv([]qp.RecvWR{{}})
	_, e4 := b.pd.Register(make([]byte, 64), 0)
	_, e5 := b.qp.Query()
	_, e6 := b.ctx.Attr()
	_, e7 := b.ctx.Port(1)
	_, e8 := b.ctx.AllocPD()
	_, e9 := b.ctx.CreateCQ(verbs.CQConfig{Entries: 1})
	_, e10 := b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq})
	_, e11 := db.Open()
	_, e12 := b.ctx.GIDs(1)
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, e12, b.cq.Arm(false), b.qp.Modify(&qp.Attr{State: qp.Err}, qp.MaskState)} {
		if !errors.Is(err, verbs.ErrDeviceLost) {
			t.Errorf("call %d on a lost device: %v", i+1, err)
		}
	}
	// The peer notices by its retry counter.
	a.send(qp.SendWR{ID: 5, Opcode: qp.Send, SGEs: a.sge(0, 8)})
	wantStatus(t, a.next(), 5, cq.RetryExceededError)
	b.close()
	a.close()
	check(t, f.Close())
}

func TestPortDownAndUp(t *testing.T) {
	// Two ports; only the first one flaps.
	f := sim.NewFabric(sim.Config{})
	o := options{path: qp.Path{AckTimeout: 4, RetryCount: 7}}
	o.fill()
	da := must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{Ports: make([]sim.Port, 2)}))
	db := must[*sim.Device](t)(f.NewDevice("b", sim.DeviceConfig{}))
	a, b := newEnd(t, da, &o), newEnd(t, db, &o)
	a2, b2 := newEnd(t, da, &o), newEnd(t, db, &o)
	connect(a, b)
	a2.path.Port = 2
	a2.aim(b2)
	b2.aim(a2)
	b2.path.DGID = must[[]verbs.GIDEntry](t)(a2.ctx.GIDs(2))[1].GID
	check(t, a2.path.Connect(a2.qp))
	check(t, b2.path.Connect(b2.qp))

	check(t, da.SetPortState(1, verbs.PortDown))
	if e := a.events(1)[0]; e.Type != verbs.EventPortError || e.Port != 1 {
		t.Fatalf("event %v", e)
	}
	a.buf[0] = 1
	if p := must[verbs.PortAttr](t)(a.ctx.Port(1)); p.State != verbs.PortDown {
		t.Fatalf("port is %v", p.State)
	}
	a.send(qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)})
	wantStatus(t, a.next(), 1, cq.RetryExceededError)
	if b.buf[0] != 0 {
		t.Error("a packet left through a port that is down")
	}
	a2.send(qp.SendWR{ID: 2, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b2.reg.Addr, RKey: b2.reg.RKey, SGEs: a2.sge(0, 8)})
	wantStatus(t, a2.next(), 2, cq.Success)

	check(t, da.SetPortState(1, verbs.PortActive))
	if e := a.events(1)[0]; e.Type != verbs.EventPortActive || e.Port != 1 {
		t.Fatalf("event %v", e)
	}
	if err := da.SetPortState(3, verbs.PortDown); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("port 3 of 2: %v", err)
	}
	// The queue pair can be used again after a reset.
	for _, e := range []*end{a, b} {
		check(t, e.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	}
	connect(a, b)
	a.send(qp.SendWR{ID: 3, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)})
	wantStatus(t, a.next(), 3, cq.Success)
	for _, e := range []*end{a, b, a2, b2} {
		e.close()
	}
	check(t, f.Close())
}

// TestGIDMoves: after a flap the GID is at another index, or another one.
func TestGIDMoves(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	o := options{path: qp.Path{AckTimeout: 4, RetryCount: 1}}
	o.fill()
	da := must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{}))
	db := must[*sim.Device](t)(f.NewDevice("b", sim.DeviceConfig{}))
	a, b := newEnd(t, da, &o), newEnd(t, db, &o)
	connect(a, b)
	check(t, db.SetGIDs(1, []sim.GID{{GIDEntry: verbs.GIDEntry{GID: verbs.GID{10: 0xff, 11: 0xff, 12: 192, 13: 168, 15: 9}, Index: 4, Type: verbs.GIDRoCEv2}}}))
	if e := b.events(1)[0]; e.Type != verbs.EventGIDChange || e.Port != 1 {
		t.Fatalf("event %v", e)
	}
	a.send(qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)})
	wantStatus(t, a.next(), 1, cq.RetryExceededError)
	for _, e := range []*end{a, b} {
		check(t, e.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	}
	gids := must[[]verbs.GIDEntry](t)(b.ctx.GIDs(1))
	if len(gids) != 1 || gids[0].Index != 4 {
		t.Fatalf("GIDs %+v", gids)
	}
	a.path.DGID = gids[0].GID
	if err := b.path.Connect(b.qp); !errors.Is(err, syscall.EINVAL) {
		t.Fatalf("RTR with the old GID index: %v", err)
	}
	check(t, b.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	b.path.SGIDIndex = 4
	check(t, a.path.Connect(a.qp))
	check(t, b.path.Connect(b.qp))
	a.send(qp.SendWR{ID: 2, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)})
	wantStatus(t, a.next(), 2, cq.Success)
	a.close()
	b.close()
	check(t, f.Close())
}

func TestPartition(t *testing.T) {
	// 8 timeouts of 0.3 s are longer than a slow machine stops for.
	a, b, f := newPair(t, sim.Config{}, options{path: qp.Path{AckTimeout: 16, RetryCount: 7}})
	da, db := a.dev.(*sim.Device), b.dev.(*sim.Device)
	write := func(a, b *end) {
		a.send(qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)})
	}
	f.Partition(da, db, true)
	write(a, b)
	a.none()
	f.Partition(da, db, false)
	wantStatus(t, a.next(), 1, cq.Success)
	if s := da.Stats(); s.Timeouts == 0 || s.Retransmits == 0 {
		t.Errorf("recovered without a retransmission: %+v", s)
	}
	a, b, f = newPair(t, sim.Config{}, options{path: qp.Path{AckTimeout: 4, RetryCount: 7}})
	f.Partition(a.dev.(*sim.Device), b.dev.(*sim.Device), true)
	write(a, b)
	wantStatus(t, a.next(), 1, cq.RetryExceededError)
	if f.FaultStats().Partitioned == 0 {
		t.Error("nothing was lost")
	}
}

// TestRegistrationLimits: a device keeps to the limit of locked memory (case C07) and to
// its own number of regions, and nothing is left of what it refused.
func TestRegistrationLimits(t *testing.T) {
	const limit = 65536
	f := sim.NewFabric(sim.Config{})
	d := must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{Memlock: limit, Limits: verbs.DeviceAttr{MaxMR: 2}}))
	ctx := must[verbs.Context](t)(d.Open())
	pd := must[verbs.PD](t)(ctx.AllocPD())
	_, err := pd.Register(make([]byte, 4<<20), mr.LocalWrite)
	if !errors.Is(err, syscall.ENOMEM) {
		t.Fatalf("register beyond the limit: %v", err)
	}
	wantText(t, err, "65536", "4194304", "ulimit -l", "--ulimit memlock", "CAP_IPC_LOCK", "a: register memory")
	if _, err = ctx.CreateCQ(verbs.CQConfig{Entries: 4096}); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("CQ beyond the limit: %v", err)
	}
	if d.Locked() != 0 {
		t.Errorf("%d bytes locked after failures", d.Locked())
	}
	r1 := must[mr.Region](t)(pd.Register(make([]byte, 40000), mr.LocalWrite))
	if _, err = pd.Register(make([]byte, 40000), mr.LocalWrite); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("second region beyond the limit: %v", err)
	}
	d.SetMemlock(8 << 20)
	r2 := must[mr.Region](t)(pd.Register(make([]byte, 4<<20), mr.LocalWrite))
	if _, err = pd.Register(make([]byte, 64), 0); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("third region of two: %v", err)
	}
	if err = pd.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("close of a domain with regions: %v", err)
	}
	if err = ctx.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("close of a context with a domain: %v", err)
	}
	check(t, pd.Deregister(r1))
	if err = pd.Deregister(r1); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("deregister twice: %v", err)
	}
	check(t, pd.Deregister(r2))
	if d.Locked() != 0 {
		t.Errorf("%d bytes locked at the end", d.Locked())
	}
	d.RefuseRegistrations(2)
	for i := range 3 {
		r, err := pd.Register(make([]byte, 64), 0)
		if (err != nil) != (i < 2) {
			t.Errorf("registration %d of which 2 fail: %v", i, err)
		}
		if err == nil {
			check(t, pd.Deregister(r))
		}
	}
	if _, err = pd.Register(make([]byte, 64), mr.RemoteWrite); !errors.Is(err, mr.ErrAccess) {
		t.Errorf("remote-write alone: %v", err)
	}
	if _, err = pd.Register(nil, 0); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("no bytes: %v", err)
	}
	check(t, pd.Close())
	check(t, ctx.Close())
	check(t, f.Close())
}

func TestWholePagesOnly(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	d := must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{PageSize: 4096}))
	ctx := must[verbs.Context](t)(d.Open())
	pd := must[verbs.PD](t)(ctx.AllocPD())
	buf := make([]byte, 3*4096)
	buf = buf[(4096-mr.Addr(buf)%4096)%4096:][:2*4096]
	for _, b := range [][]byte{buf[1:], buf[:4097], buf[64:4160]} {
		if _, err := pd.Register(b, 0); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%d bytes at %#x: %v", len(b), mr.Addr(b), err)
		}
	}
	check(t, pd.Deregister(must[mr.Region](t)(pd.Register(buf, 0))))
	check(t, pd.Close())
	check(t, ctx.Close())
	check(t, f.Close())
}
