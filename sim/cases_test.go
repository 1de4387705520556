package sim_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// portMTU is a device with that active MTU.
func portMTU(m qp.MTU) sim.DeviceConfig {
	return sim.DeviceConfig{Ports: []sim.Port{{PortAttr: verbs.PortAttr{ActiveMTU: m}}}}
}

// TestUnequalMTU is case C01: ports of different active MTU work at the lower
// one, and a forced mismatch ends in an error, not a hang.
func TestUnequalMTU(t *testing.T) {
	for _, segment := range []bool{true, false} {
		for _, c := range []struct{ a, b, path qp.MTU }{
			{qp.MTU4096, qp.MTU1024, qp.MTU1024}, {qp.MTU4096, qp.MTU4096, qp.MTU4096}, {qp.MTU2048, qp.MTU1024, qp.MTU1024}, {qp.MTU4096, qp.MTU1024, qp.MTU512},
		} {
			a, b, _ := newPair(t, sim.Config{Segment: segment}, options{buf: 2 << 20, path: qp.Path{MTU: c.path}, devA: portMTU(c.a), devB: portMTU(c.b)})
			for _, e := range []*end{a, b} {
				if got := must[qp.Attr](t)(e.qp.Query()).PathMTU; got != c.path {
					t.Errorf("path MTU %v, want %v", got, c.path)
				}
			}
			for _, size := range []int{1, 1023, 1024, 1025, 4096, 65536, 1 << 20} {
				for _, dir := range [][2]*end{{a, b}, {b, a}} {
					src, dst := dir[0], dir[1]
					for i := range size {
						src.buf[i] = byte(i*i + size)
					}
					for _, op := range []qp.Opcode{qp.Send, qp.WriteWithImm, qp.Read} {
						clear(dst.buf[1<<20:])
						x, y := src, dst
						if op == qp.Read {
							x, y = dst, src
						} else {
							dst.recv(2, 1<<20, 1<<20)
						}
						wr := qp.SendWR{ID: 1, Opcode: op, Flags: qp.Signaled, RKey: y.reg.RKey, RemoteAddr: y.reg.Addr + 1<<20, SGEs: x.sge(0, size)}
						if op == qp.Read {
							wr.RemoteAddr, wr.SGEs = y.reg.Addr, x.sge(1<<20, size)
						}
						x.send(wr)
						wantStatus(t, x.next(), 1, cq.Success)
						if op != qp.Read {
							wantStatus(t, y.next(), 2, cq.Success)
						}
						if !bytes.Equal(src.buf[:size], dst.buf[1<<20:][:size]) {
							t.Fatalf("%v of %d bytes: wrong content", op, size)
						}
					}
				}
			}
		}
		// The control: each side programs its own value.
		for _, dir := range []bool{false, true} {
			a, b, _ := newPair(t, sim.Config{Segment: segment}, options{path: qp.Path{MTU: qp.MTU1024}, devB: portMTU(qp.MTU1024)})
			for _, e := range []*end{a, b} {
				check(t, e.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
			}
			a.path.MTU = qp.MTU4096
			connect(a, b)
			if dir {
				a, b = b, a
			}
			b.recv(2, 0, 8192)
			a.send(qp.SendWR{ID: 1, Opcode: qp.Send, SGEs: a.sge(0, 1024)})
			wantStatus(t, b.next(), 2, cq.Success) // short messages pass
			b.recv(3, 0, 8192)
			a.send(qp.SendWR{ID: 4, Opcode: qp.Send, SGEs: a.sge(0, 8192)})
			wantStatus(t, a.next(), 4, cq.RemoteInvalidRequestError)
			wantStatus(t, b.next(), 3, cq.LocalLengthError)
		}
	}
}

// TestForeignGIDs is case C03: a shared table holds GIDs of another container's
// interface. They are listed, but RTR says ENODEV; the next candidate works.
func TestForeignGIDs(t *testing.T) {
	var table []sim.GID
	for i := range 8 {
		g := verbs.GID{10: 0xff, 11: 0xff, 12: 172, 13: 16, 15: byte(i)}
		table = append(table, sim.GID{GIDEntry: verbs.GIDEntry{GID: g, Index: i, Type: verbs.GIDRoCEv2}, Foreign: i == 5 || i == 7})
	}
	f := sim.NewFabric(sim.Config{})
	o := options{}
	o.fill()
	a := newEnd(t, must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{Ports: []sim.Port{{GIDs: table}}})), &o)
	b := newEnd(t, must[*sim.Device](t)(f.NewDevice("b", sim.DeviceConfig{})), &o)
	gids := must[[]verbs.GIDEntry](t)(a.ctx.GIDs(1))
	if len(gids) != 8 {
		t.Fatalf("%d GIDs", len(gids))
	}
	a.aim(b)
	check(t, a.path.ToInit(a.qp))
	var used int
	for i := len(gids) - 1; i >= 0; i-- { // the reverse scan of the report
		a.path.SGIDIndex = uint8(gids[i].Index)
		err := a.path.ToRTR(a.qp)
		if err == nil {
			used = gids[i].Index
			break
		}
		if !errors.Is(err, syscall.ENODEV) {
			t.Fatalf("GID index %d: %v", i, err)
		}
		wantText(t, err, "a: modify", "GID index", "network namespace")
	}
	if used != 6 {
		t.Fatalf("index %d was taken, want 6", used)
	}
	check(t, a.path.ToRTS(a.qp))
	b.aim(a)
	check(t, b.path.Connect(b.qp))
	b.recv(1, 0, 64)
	a.send(qp.SendWR{Opcode: qp.Send, SGEs: a.sge(0, 8)})
	wantStatus(t, b.next(), 1, cq.Success)
	a.close()
	b.close()
	check(t, f.Close())
}

// TestRoCEVersionsDoNotTalk is case C04: v1 and v2 ends never hear of each other,
// as packets of one are nothing to the other.
func TestRoCEVersionsDoNotTalk(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	o := options{path: qp.Path{AckTimeout: 4, RetryCount: 1}}
	o.fill()
	ga, gb := verbs.GID{0: 0xfe, 1: 0x80, 15: 1}, verbs.GID{0: 0xfe, 1: 0x80, 15: 2}
	port := func(gids ...sim.GID) sim.DeviceConfig { return sim.DeviceConfig{Ports: []sim.Port{{GIDs: gids}}} }
	entry := func(g verbs.GID, i int, typ verbs.GIDType) sim.GID {
		return sim.GID{GIDEntry: verbs.GIDEntry{GID: g, Index: i, Type: typ}}
	}
	da := must[*sim.Device](t)(f.NewDevice("a", port(entry(ga, 0, verbs.GIDRoCEv1))))
	db := must[*sim.Device](t)(f.NewDevice("b", port(entry(gb, 0, verbs.GIDRoCEv1), entry(gb, 1, verbs.GIDRoCEv2))))
	for index, want := range []cq.Status{cq.Success, cq.RetryExceededError} {
		a, b := newEnd(t, da, &o), newEnd(t, db, &o)
		a.path.SGIDIndex, b.path.SGIDIndex = 0, uint8(index)
		connect(a, b)
		a.send(qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)})
		wantStatus(t, a.next(), 1, want)
		a.close()
		b.close()
	}
	check(t, f.Close())
}

// TestReceivesOvertakeSends is the simulator's side of case C11 in real time:
// with receive completions let ahead of send completions, none is lost and each
// kind keeps its order.
func TestReceivesOvertakeSends(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{devA: sim.DeviceConfig{HoldSends: 32}})
	const rounds, depth = 20, 32
	for round := range rounds {
		for i := range depth {
			a.recv(uint64(i), 0, 64)
			b.recv(uint64(i), 0, 64)
		}
		for i := range depth {
			// Not where the receives write: the devices would race there.
			a.send(qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled, SGEs: a.sge(64, 8)})
			b.send(qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled, SGEs: b.sge(64, 8)})
		}
		next := map[bool]uint64{}
		for _, c := range a.nextN(2 * depth) {
			recv := c.Opcode == cq.Recv
			if c.Status != cq.Success || c.ID != next[recv] {
				t.Fatalf("round %d: %v %d %v, want %d", round, c.Opcode, c.ID, c.Status.Name(), next[recv])
			}
			next[recv]++
		}
		b.nextN(2 * depth)
	}
}

// TestSlowReceiver is the simulator's side of case C13: a receiver that posts
// each receive late and a sender without credits. With rnr_retry 0 the queue pair
// dies; with 7 every message arrives, after RNR NAKs.
func TestSlowReceiver(t *testing.T) {
	const messages = 60
	post := func(a, b *end) {
		for i := range messages {
			wr := qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 32)}
			if i%3 == 0 {
				wr.Opcode = qp.WriteWithImm
			}
			a.send(wr)
		}
	}
	a, b, _ := newPair(t, sim.Config{}, options{path: qp.Path{NoRNRRetry: true}})
	b.recv(0, 0, 64)
	post(a, b)
	cs := a.nextN(messages)
	wantStatus(t, cs[0], 0, cq.Success)
	wantStatus(t, cs[1], 1, cq.RNRRetryExceededError)
	wantStatus(t, cs[2], 2, cq.WRFlushError)

	a, b, _ = newPair(t, sim.Config{}, options{path: qp.Path{RNRTimer: 1}}) // 10 us
	post(a, b)
	stats := func() sim.Stats { return a.dev.(*sim.Device).Stats() }
	for range messages {
		for before := stats().RNRNaksReceived; stats().RNRNaksReceived == before; {
			time.Sleep(10 * time.Microsecond)
		}
		b.recv(7, 0, 64)
		wantStatus(t, b.next(), 7, cq.Success)
	}
	for i, c := range a.nextN(messages) {
		wantStatus(t, c, uint64(i), cq.Success)
	}
	if n := stats().RNRNaksReceived; n < messages {
		t.Errorf("%d RNR NAKs counted, want at least %d", n, messages)
	}
}

// TestPeerVanishes is case C19: all packets are lost; the retry counter finds it
// while busy, in the time that the attributes say.
func TestPeerVanishes(t *testing.T) {
	a, b, f := newPair(t, sim.Config{}, options{path: qp.Path{AckTimeout: 6, RetryCount: 7}}) // 262 us
	f.SetFaults(sim.Faults{Drop: 1})
	start := time.Now()
	a.send(qp.SendWR{ID: 1, Opcode: qp.Write, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, 8)})
	wantStatus(t, a.next(), 1, cq.RetryExceededError)
	if took, least := time.Since(start), 8*qp.AckTimeout(6).Duration(); took < least {
		t.Errorf("gave up after %v, want at least 8 timeouts, %v", took, least)
	}
	if s := a.dev.(*sim.Device).Stats(); s.Timeouts != 8 || s.Retransmits != 7 {
		t.Errorf("%d timeouts, %d packets again, want 8 and 7", s.Timeouts, s.Retransmits)
	}
	if a.qp.State() != qp.Err {
		t.Errorf("state %v", a.qp.State())
	}
}
