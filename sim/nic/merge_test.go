package nic

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// together has x's requests arrive at y at a time, in one DeliverAll.
func together(v *vnet, y *vend) {
	var arrived []Packet
	for i := 0; i < len(v.queue); {
		if e := v.queue[i]; e.p != nil && e.h == y.h {
			arrived = append(arrived, *e.p)
			v.queue = append(v.queue[:i], v.queue[i+1:]...)
			continue
		}
		i++
	}
	for i := range arrived { // in the order of sending
		for k := i; k > 0 && arrived[k].PSN.Less(arrived[k-1].PSN); k-- {
			arrived[k], arrived[k-1] = arrived[k-1], arrived[k]
		}
	}
	y.h.nic.DeliverAll(v.now, arrived)
}

// TestWritesMerge: whatever WRITEs arrive together, what lies in memory in the end is what one
// after the other would have left.
func TestWritesMerge(t *testing.T) {
	s := seed(t)
	r := rand.New(rand.NewPCG(s, 5))
	const size = 1 << 15
	for round := range 300 {
		v := newNet(t, s)
		x, y := v.pairOf(v.add(nil), v.add(nil), size, nil)
		bufs, regs := [2][]byte{x.buf, make([]byte, size)}, [2]*Region{x.reg}
		regs[1] = x.register(bufs[1], rights)
		for _, b := range bufs {
			for i := range b {
				b[i] = byte(r.Uint32())
			}
		}
		want := make([]byte, size)
		src, dst, of := 0, 0, 0
		var wrs []qp.SendWR
		for range 1 + r.IntN(40) {
			n := r.IntN(3000)
			if r.IntN(3) == 0 || max(src, dst)+n > size {
				src, dst, of = r.IntN(size-n), r.IntN(size-n), r.IntN(2) // not where the last one ended
			}
			op := qp.Write
			if r.IntN(4) == 0 {
				op = qp.WriteWithImm
			}
			wr := y.remote(op, []qp.SGE{{Addr: mr.Addr(bufs[of]) + uint64(src), Length: uint32(n), LKey: regs[of].LKey}})
			wr.RemoteAddr += uint64(dst)
			copy(want[dst:], bufs[of][src:src+n])
			if op == qp.WriteWithImm {
				y.recv(qp.RecvWR{})
			}
			wrs = append(wrs, wr)
			src, dst = src+n, dst+n
		}
		x.send(wrs...)
		together(v, y)
		if !bytes.Equal(y.buf, want) {
			t.Fatalf("round %d: %d requests left other bytes", round, len(wrs))
		}
		y.h.run()
		v.idle()
		for _, c := range append(x.poll(), y.poll()...) {
			if c.Status != 0 {
				t.Fatalf("round %d: %v", round, c.Status)
			}
		}
		if x.q.lease.n.Load() != 0 || regs[0].n.Load() != 0 || regs[1].n.Load() != 0 {
			t.Fatalf("round %d: memory is held after it was copied", round)
		}
	}
}

// TestMergedWritesBeforeCompletion: when a receive completes, all that was written
// before it is in memory.
func TestMergedWritesBeforeCompletion(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
	copy(x.buf, "first, second")
	last := y.remote(qp.WriteWithImm, []qp.SGE{x.sge(6, 7)})
	last.RemoteAddr += 6
	y.recv(qp.RecvWR{})
	told := ""
	y.cq.notify = func() { told = string(y.buf[:13]) }
	y.cq.Arm(false)
	x.send(y.remote(qp.Write, []qp.SGE{x.sge(0, 6)}), last)
	together(v, y)
	if told != "first, second" {
		t.Errorf("with the completion the peer has %q", told)
	}
}

// TestMergedWritesOfRefused: what was taken before a request that is refused is in
// memory when its receive fails, and the sender's memory is free.
func TestMergedWritesOfRefused(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
	copy(x.buf, "first and second, refused")
	at := func(off, n int, key mr.RKey) qp.SendWR {
		wr := y.remote(qp.Write, []qp.SGE{x.sge(off, n)})
		wr.RemoteAddr += uint64(off)
		wr.RKey += key
		return wr
	}
	y.recv(qp.RecvWR{ID: 7})
	x.send(at(0, 10, 0), at(10, 6, 0), at(16, 9, 1))
	together(v, y)
	if got := string(y.buf[:25]); got != "first and second\x00\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("the peer has %q", got)
	}
	wantBrief(t, "receive", y.poll(), "7:WR_FLUSH_ERR")
	if x.q.lease.n.Load() != 0 || x.reg.n.Load() != 0 {
		t.Error("memory is held after it was copied")
	}
}

// TestMergedWritesOfLostMemory: a request whose memory is gone when it arrives is as good as
// lost, and those before it are not.
func TestMergedWritesOfLostMemory(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
	other := []byte("of other memory")
	reg := x.register(other, rights)
	copy(x.buf, "of the first")
	at := func(off int, g qp.SGE) qp.SendWR {
		wr := y.remote(qp.Write, []qp.SGE{g})
		wr.RemoteAddr += uint64(off)
		return wr
	}
	x.send(at(0, x.sge(0, 12)), at(100, qp.SGE{Addr: mr.Addr(other), Length: 15, LKey: reg.LKey}))
	x.h.nic.DestroyRegion(reg)
	together(v, y)
	if got := string(y.buf[:12]); got != "of the first" {
		t.Errorf("the peer has %q of the memory that is there", got)
	}
	if y.buf[100] != 0 || y.h.nic.stats.RevokedPayloads != 1 {
		t.Errorf("the peer has %q of the memory that is gone; counted %d times", y.buf[100:115], y.h.nic.stats.RevokedPayloads)
	}
	if x.q.lease.n.Load() != 0 || x.reg.n.Load() != 0 || !reg.Idle() {
		t.Error("memory is held after it was copied")
	}
}
