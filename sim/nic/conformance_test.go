package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// split cuts n bytes at off into k segments, the first of which may be empty.
func (e *vend) split(off, n, k int) []qp.SGE {
	var s []qp.SGE
	for i := range k {
		size := n / k
		if i == k-1 {
			size = n - n/k*(k-1)
		}
		s = append(s, e.sge(off, size))
		off += size
	}
	return s
}

func TestEveryOperation(t *testing.T) {
	const buf = 1<<20 + 64
	sizes := []int{0, 1, 255, 256, 257, 1023, 1024, 1025, 4096, 4097, 65536, 1 << 20}
	for mtu := qp.MTU(0); mtu <= qp.MTU4096; mtu++ { // 0: one packet a message
		v := newNet(t, 1)
		whole := func(c *Config) { c.Segment = mtu != 0 }
		x, y := v.pairOf(v.add(whole), v.add(whole), buf, func(a, b *qp.Path) { a.MTU, b.MTU = max(mtu, 1), max(mtu, 1) })
		for op := qp.Write; op <= qp.Read; op++ {
			for _, size := range sizes {
				for _, sges := range []int{1, 2, 7, 32} {
					name := fmt.Sprintf("mtu %v, %v of %d bytes in %d segments", mtu, op, size, sges)
					oneOperation(t, v, x, y, op, size, sges, name)
				}
			}
		}
	}
}

var (
	noise     = randomBytes(1<<20 + 1024)
	untouched = bytes.Repeat([]byte{0xee}, 1<<20+64)
)

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13)
	}
	return b
}

func oneOperation(t *testing.T, v *vnet, x, y *vend, op qp.Opcode, size, sges int, name string) {
	t.Helper()
	src, dst := x, y
	if op == qp.Read {
		src, dst = y, x
	}
	const at = 32 // the bytes around the target must stay
	binary.LittleEndian.PutUint64(src.buf, uint64(size)<<8|uint64(op))
	copy(src.buf[at:at+size], noise[int(op)*64+sges:])
	copy(dst.buf[:at+size+32], untouched)
	wr := qp.SendWR{ID: 1, Opcode: op, Flags: qp.Signaled, Imm: 0x01020304, RemoteAddr: y.reg.Addr + at, RKey: y.reg.RKey, SGEs: x.split(at, size, sges)}
	if op.ConsumesRecv() {
		y.recv(qp.RecvWR{ID: 2, SGEs: y.split(at, size, sges%31+1)})
	}
	x.send(wr)
	v.idle()
	wantBrief(t, name, x.poll(), "1:SUCCESS")
	if op.ConsumesRecv() {
		cs := y.poll()
		wantBrief(t, name+", receiver", cs, "2:SUCCESS")
		want := cq.Completion{ID: 2, ByteLen: uint32(size), QPNum: y.q.num, Opcode: cq.Recv}
		if op == qp.WriteWithImm {
			want.Opcode = cq.RecvWriteWithImm
		}
		if op.HasImm() {
			want.Flags, want.Imm = cq.HasImm, 0x01020304
		}
		if cs[0] != want {
			t.Fatalf("%s: completion %+v, want %+v", name, cs[0], want)
		}
	} else if cs := y.poll(); len(cs) > 0 {
		t.Fatalf("%s: the peer was told: %v", name, brief(cs))
	}
	if !bytes.Equal(src.buf[at:at+size], dst.buf[at:at+size]) {
		t.Fatalf("%s: wrong bytes", name)
	}
	for _, i := range []int{at - 1, at + size} {
		if dst.buf[i] != 0xee {
			t.Fatalf("%s: byte %d outside the target changed", name, i-at)
		}
	}
}

// TestPacketsAndPSNs counts the packets of a message and follows their sequence
// numbers over the wrap (case C01).
func TestPacketsAndPSNs(t *testing.T) {
	for _, c := range []struct {
		mtu     qp.MTU
		packets int
	}{{qp.MTU1024, 1024}, {qp.MTU4096, 256}} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(nil), v.add(nil), 1<<20, func(a, b *qp.Path) { a.MTU, b.MTU = c.mtu, c.mtu })
		var psns []qp.PSN
		kinds := map[Op]int{}
		v.filter = func(p *Packet) bool {
			if p.Op.flags()&isRequest != 0 {
				psns = append(psns, p.PSN)
				kinds[p.Op]++
			}
			return true
		}
		x.send(qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: y.reg.Addr, RKey: y.reg.RKey, SGEs: []qp.SGE{x.sge(0, 1<<20)}})
		v.idle()
		if len(psns) != c.packets || kinds[OpWriteFirst] != 1 || kinds[OpWriteMiddle] != c.packets-2 || kinds[OpWriteLast] != 1 {
			t.Errorf("mtu %v: %d packets: %v, want %d", c.mtu, len(psns), kinds, c.packets)
		}
		if want := []qp.PSN{0xfffffe, 0xffffff, 0, 1}; !slices.Equal(psns[:4], want) {
			t.Errorf("mtu %v: PSNs begin %x, want %x", c.mtu, psns[:4], want)
		}
	}
}

func TestAtomics(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
	word := y.buf[64:72]
	binary.NativeEndian.PutUint64(word, 10)
	remote := qp.SendWR{Flags: qp.Signaled, RemoteAddr: y.reg.Addr + 64, RKey: y.reg.RKey}
	for i, c := range []struct {
		op        qp.Opcode
		ca, swap  uint64
		old, then uint64
	}{
		{qp.FetchAdd, 5, 0, 10, 15},
		{qp.FetchAdd, ^uint64(0), 0, 15, 14}, // -1
		{qp.CompareSwap, 14, 77, 14, 77},
		{qp.CompareSwap, 14, 99, 77, 77}, // does not match
	} {
		wr := remote
		wr.ID, wr.Opcode, wr.CompareAdd, wr.Swap, wr.SGEs = uint64(i), c.op, c.ca, c.swap, []qp.SGE{x.sge(8, 8)}
		x.send(wr)
		v.idle()
		cs := x.poll()
		wantBrief(t, "atomic", cs, fmt.Sprintf("%d:SUCCESS", i))
		if cs[0].ByteLen != 8 {
			t.Errorf("%d: %d bytes, want 8", i, cs[0].ByteLen)
		}
		if old, then := binary.NativeEndian.Uint64(x.buf[8:]), binary.NativeEndian.Uint64(word); old != c.old || then != c.then {
			t.Errorf("%d %v: got old %d, then %d; want %d, %d", i, c.op, old, then, c.old, c.then)
		}
	}
}

// TestReadsOutstanding holds the responses back and looks at how many READs are
// under way.
func TestReadsOutstanding(t *testing.T) {
	for _, c := range []struct {
		max   uint8
		fence bool
		want  int
	}{{1, false, 1}, {4, false, 4}, {16, false, 10}, {16, true, 1}} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(nil), v.add(nil), 65536, func(a, b *qp.Path) { a.MaxReads, b.MaxDestReads = c.max, c.max })
		requests := 0
		v.filter = func(p *Packet) bool {
			if p.Op == OpReadRequest {
				requests++
			}
			return true
		}
		for i := range 10 {
			wr := qp.SendWR{ID: uint64(i), Opcode: qp.Read, Flags: qp.Signaled, RemoteAddr: y.reg.Addr, RKey: y.reg.RKey, SGEs: []qp.SGE{x.sge(i*4096, 4096)}}
			if c.fence {
				wr.Flags |= qp.Fence
			}
			x.send(wr)
		}
		if requests != c.want {
			t.Errorf("%+v: %d READs under way, want %d", c, requests, c.want)
		}
		v.idle()
		wantBrief(t, "reads", x.poll(), "0:SUCCESS 1:SUCCESS 2:SUCCESS 3:SUCCESS 4:SUCCESS 5:SUCCESS 6:SUCCESS 7:SUCCESS 8:SUCCESS 9:SUCCESS")
	}
}

func TestSelectiveSignaling(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
	w := qp.SendWR{Opcode: qp.Write, RemoteAddr: y.reg.Addr, RKey: y.reg.RKey, SGEs: []qp.SGE{x.sge(0, 8)}}
	wrs := make([]qp.SendWR, 64)
	for i := range wrs {
		wrs[i] = w
		wrs[i].ID = uint64(i)
	}
	x.send(wrs...)
	v.idle()
	if cs := x.poll(); len(cs) != 0 {
		t.Fatalf("unsignaled requests were reported: %v", brief(cs))
	}
	// All are done, but only a polled completion frees slots, as on real devices.
	if n, err := x.q.PostSend(wrs[:1], 1<<31); n != 0 || err != qp.ErrQueueFull {
		t.Fatalf("post to a full queue: %d, %v", n, err)
	}
	v = newNet(t, 1)
	x, y = v.pairOf(v.add(nil), v.add(nil), 4096, nil)
	w.RemoteAddr, w.RKey, w.SGEs = y.reg.Addr, y.reg.RKey, []qp.SGE{x.sge(0, 8)}
	for i := range wrs {
		wrs[i] = w
		wrs[i].ID = uint64(i)
	}
	wrs[63].Flags = qp.Signaled
	for range 3 {
		x.send(wrs...)
		v.idle()
		wantBrief(t, "last is signaled", x.poll(), "63:SUCCESS")
	}
}

func TestAllSignaled(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.end(v.add(nil), 64, 64), v.end(v.add(nil), 64, 64)
	x.q.sigAll = true
	v.join(x, y)
	for i := range 3 {
		wr := y.remote(qp.Write, nil)
		wr.ID = uint64(i)
		x.send(wr)
	}
	v.idle()
	wantBrief(t, "unsignaled requests of a queue pair that signals all", x.poll(), "0:SUCCESS 1:SUCCESS 2:SUCCESS")
}

func TestSolicitedEvents(t *testing.T) {
	v := newNet(t, 1)
	a, b := v.add(nil), v.add(nil)
	x, y := v.pairOf(a, b, 4096, nil)
	told := 0
	y.cq.notify = func() { told++ }
	step := func(flags qp.SendFlags, want int, what string) {
		t.Helper()
		y.recv(qp.RecvWR{SGEs: []qp.SGE{y.sge(0, 64)}})
		x.send(qp.SendWR{Opcode: qp.Send, Flags: flags, SGEs: []qp.SGE{x.sge(0, 8)}})
		v.idle()
		if told != want {
			t.Fatalf("%s: %d events, want %d", what, told, want)
		}
	}
	step(qp.Solicited, 0, "not armed")
	y.cq.Arm(false)
	step(0, 1, "armed")
	step(0, 1, "one arm gives one event")
	y.cq.Arm(true)
	step(0, 1, "armed for solicited, unsolicited message")
	step(qp.Solicited, 2, "armed for solicited, solicited message")
	y.cq.Arm(true)
	y.recv(qp.RecvWR{})
	x.send(qp.SendWR{Opcode: qp.Send, SGEs: []qp.SGE{x.sge(0, 8)}}) // too long for it
	v.idle()
	if told != 3 {
		t.Fatalf("a failed completion gave no event")
	}
}

// TestHoldSends: receive completions overtake up to that many send completions
// of the same CQ (case C11). A sender that takes the peer's answer for a free slot
// finds its queue full.
func TestHoldSends(t *testing.T) {
	for _, hold := range []int{0, 8, 32} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(func(c *Config) { c.HoldSends = hold }), v.add(nil), 4096, nil)
		for i := range 40 {
			x.recv(qp.RecvWR{ID: uint64(100 + i)})
		}
		for i := range 64 {
			y.recv(qp.RecvWR{})
			x.send(qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled})
		}
		for x.q.sq.una != x.q.sq.posted() && v.step() { // all are acknowledged
		}
		for i := range 20 {
			y.send(qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled})
			v.step()
			v.step()
		}
		early := x.poll()
		overtook := 0
		for overtook < len(early) && early[overtook].Opcode == cq.Recv {
			overtook++
		}
		want := map[int]int{0: 0, 8: 8, 32: 20}[hold]
		if overtook != want {
			t.Errorf("hold %d: %d receives came first, want %d", hold, overtook, want)
		}
		if n, err := x.q.PostSend(make([]qp.SendWR, 1), 1<<31); hold == 32 && (n != 0 || err != qp.ErrQueueFull) {
			t.Errorf("hold %d: post before the send completions: %d, %v", hold, n, err)
		}
		v.idle()
		all := append(early, x.poll()...)
		if len(all) < 84 {
			t.Errorf("hold %d: %d completions, want 84", hold, len(all))
		}
	}
}
