package sim_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// Windows are bound, used and invalidated in any order among other requests, on a
// fabric that loses and delays packets: requests complete in order, each once, and
// an invalidation that is sent again invalidates nothing more.
func TestWindowsUnderLoss(t *testing.T) {
	s := seed(t)
	for _, segment := range []bool{true, false} {
		rnd := rand.New(rand.NewPCG(s, 7))
		a, b, f := newPair(t, sim.Config{Segment: segment, Seed: s}, options{path: qp.Path{MTU: qp.MTU1024, AckTimeout: 8, RetryCount: 7}, sigAll: true})
		f.SetFaults(sim.Faults{Drop: 0.02, Duplicate: 0.02, Delay: 0.05, MaxDelay: 100 * time.Microsecond})
		mem := must[verbs.Memory](t)(verbs.MemoryOf(b.pd))
		w := must[mr.Window](t)(mem.AllocWindow())
		region := must[mr.Region](t)(b.pd.Register(b.buf, allAccess|mr.WindowBind))
		key, bound := w.RKey, false
		id := uint64(0)
		for range 300 {
			n := 1 + rnd.IntN(4096)
			if !bound { // among other requests of B, some of which await A
				off := rnd.IntN(32 << 10)
				wrs := []qp.SendWR{
					{ID: id, Opcode: qp.Read, SGEs: b.sge(60000, 64), RemoteAddr: a.reg.Addr, RKey: a.reg.RKey},
					{ID: id + 1, Opcode: qp.BindMW, RKey: key, Bind: &qp.Bind{Region: region.LKey, Addr: region.Addr + uint64(off), Length: uint64(n), Access: mr.RemoteWrite, RKey: key.Next()}},
					{ID: id + 2, Opcode: qp.Write, SGEs: b.sge(50000, 3000), RemoteAddr: a.reg.Addr + 8192, RKey: a.reg.RKey},
				}
				if k, err := b.qp.PostSend(wrs); k != 3 || err != nil {
					t.Fatal(k, err)
				}
				key, bound = key.Next(), true
				for i, c := range b.nextN(3) {
					wantStatus(t, c, id+uint64(i), cq.Success)
				}
				id += 3
				for i := range n {
					a.buf[i] = byte(rnd.Uint32())
				}
				a.send(qp.SendWR{ID: id, Opcode: qp.Write, SGEs: a.sge(0, n), RemoteAddr: region.Addr + uint64(off), RKey: key})
				wantStatus(t, a.next(), id, cq.Success)
				if !bytes.Equal(b.buf[off:off+n], a.buf[:n]) {
					t.Fatal("wrong content")
				}
				continue
			}
			bound = false
			if rnd.IntN(2) == 0 {
				b.send(qp.SendWR{ID: id, Opcode: qp.LocalInv, RKey: key})
				wantStatus(t, b.next(), id, cq.Success)
				id++
				continue
			}
			b.recv(id, 40960, 8192)
			a.send(qp.SendWR{ID: id, Opcode: qp.SendWithInv, RKey: key, SGEs: a.sge(0, n)})
			wantStatus(t, a.next(), id, cq.Success)
			c := b.next()
			wantStatus(t, c, id, cq.Success)
			if c.Flags != cq.HasInvalidate || mr.RKey(c.Imm) != key || int(c.ByteLen) != n {
				t.Fatalf("completion %+v", c)
			}
			id++
		}
		f.SetFaults(sim.Faults{})
		check(t, mem.FreeWindow(w))
		check(t, b.pd.Deregister(region))
	}
}

// A window of a queue pair that is gone or was reset gives nothing any more, and its
// region is free.
func TestWindowOfClosedQueuePair(t *testing.T) {
	for name, end := range map[string]func(*end) error{
		"closed": func(e *end) error { return e.qp.Close() },
		"reset":  func(e *end) error { return e.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState) },
	} {
		_, b, _ := newPair(t, sim.Config{}, options{})
		mem := must[verbs.Memory](t)(verbs.MemoryOf(b.pd))
		w := must[mr.Window](t)(mem.AllocWindow())
		region := must[mr.Region](t)(b.pd.Register(b.buf, allAccess|mr.WindowBind))
		b.send(qp.SendWR{Opcode: qp.BindMW, Flags: qp.Signaled, RKey: w.RKey, Bind: &qp.Bind{Region: region.LKey, Addr: region.Addr, Length: 64, RKey: w.RKey.Next()}})
		wantStatus(t, b.next(), 0, cq.Success)
		if err := b.pd.Deregister(region); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("%s: a region with a window bound to it: %v", name, err)
		}
		if _, err := mem.Reregister(region, nil, 0); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("%s: changing a region with a window bound to it: %v", name, err)
		}
		check(t, end(b))
		check(t, b.pd.Deregister(region))
		if err := b.pd.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("%s: a domain with a window: %v", name, err)
		}
		check(t, mem.FreeWindow(w))
		if name == "closed" {
			b.qp = newQPOf(t, b, &options{caps: qp.Caps{SendWR: 1, RecvWR: 1}})
		}
	}
}

func TestWindowLimits(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	d := must[*sim.Device](t)(f.NewDevice("few", sim.DeviceConfig{Limits: verbs.DeviceAttr{MaxMW: 2}}))
	ctx := must[verbs.Context](t)(d.Open())
	pd := must[verbs.PD](t)(ctx.AllocPD())
	mem := must[verbs.Memory](t)(verbs.MemoryOf(pd))
	w1, w2 := must[mr.Window](t)(mem.AllocWindow()), must[mr.Window](t)(mem.AllocWindow())
	if _, err := mem.AllocWindow(); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("a third window: %v", err)
	}
	d.Remove()
	if _, err := mem.AllocWindow(); !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("a window of a lost device: %v", err)
	}
	check(t, mem.FreeWindow(w1))
	check(t, mem.FreeWindow(w2))
	check(t, pd.Close())
	check(t, ctx.Close())
	check(t, f.Close())

	plain := must[*sim.Device](t)(sim.NewFabric(sim.Config{}).NewDevice("plain", sim.DeviceConfig{Limits: verbs.DeviceAttr{Flags: verbs.FlagRNRNakGen}}))
	o := options{}
	o.fill()
	e := newEnd(t, plain, &o)
	if _, err := must[verbs.Memory](t)(verbs.MemoryOf(e.pd)).AllocWindow(); !errors.Is(err, verbs.ErrUnsupported) || e.qp.Caps().Windows {
		t.Errorf("a window of a device without: %v, capacities %+v", err, e.qp.Caps())
	}
	e.close()
}
