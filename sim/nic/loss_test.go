package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// workload is a random list of requests of one side that any network must carry
// out exactly once and in order.
type workload struct {
	rand  *rand.Rand
	trace strings.Builder // what the receiver saw, and the results of the sender
	x, y  *vend
	v     *vnet
	adds  uint64
}

const (
	loadMessages = 400
	slotSize     = 8192 // where message i lies: slot i % 32
)

// run does the whole workload and returns the trace.
func (w *workload) run(t *testing.T) string {
	posted, done, seen := 0, 0, 0
	for range 32 {
		w.y.recv(w.receive(seen))
		seen++
	}
	counter := w.y.buf[32*slotSize:]
	for done < loadMessages {
		for posted < loadMessages && posted-done < 24 {
			w.x.send(w.request(posted))
			posted++
		}
		if !w.v.step() {
			t.Fatalf("stuck: %d posted, %d done; sender %+v", posted, done, w.x.h.nic.Stats())
		}
		for _, c := range w.x.poll() {
			if c.Status != cq.Success || c.ID != uint64(done) {
				t.Fatalf("sender: completion %d %v, want %d; %+v", c.ID, c.Status.Name(), done, w.x.h.nic.Stats())
			}
			if c.Opcode == cq.Read || c.Opcode == cq.FetchAdd {
				i := int(c.ID) % 32
				fmt.Fprintf(&w.trace, "%v %d: %x\n", c.Opcode, c.ID, hash(w.x.buf[(32+i)*slotSize:][:c.ByteLen]))
			}
			done++
		}
		for _, c := range w.y.poll() {
			if c.Status != cq.Success {
				t.Fatalf("receiver: %d %v", c.ID, c.Status.Name())
			}
			fmt.Fprintf(&w.trace, "%v %d: %d bytes imm %#x flags %d: %x\n", c.Opcode, c.ID, c.ByteLen, c.Imm, c.Flags, hash(w.y.buf[int(c.ID)%32*slotSize:][:c.ByteLen]))
			w.y.recv(w.receive(seen))
			seen++
		}
	}
	w.v.idle()
	if got := binary.NativeEndian.Uint64(counter); got != w.adds {
		t.Fatalf("counter: %d after adding %d: atomics ran more or less than once", got, w.adds)
	}
	return w.trace.String()
}

func hash(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

// receive is the i-th receive; its slot of the buffer is not written by others.
func (w *workload) receive(i int) qp.RecvWR {
	return qp.RecvWR{ID: uint64(i), SGEs: w.y.split(i%32*slotSize, slotSize, 3)}
}

// request makes the i-th request, with content that depends on i alone.
func (w *workload) request(i int) qp.SendWR {
	size := []int{0, 1, 300, 1024, 1500, 5000, slotSize}[w.rand.IntN(7)]
	src := i % 32 * slotSize
	for k := range size {
		w.x.buf[src+k] = byte(i*31 + k*k)
	}
	wr := qp.SendWR{ID: uint64(i), Flags: qp.Signaled, Imm: uint32(i), RKey: w.y.reg.RKey}
	area := 33 * slotSize // that WRITEs and READs use, beyond the receives
	switch w.rand.IntN(8) {
	case 0, 1:
		wr.Opcode = qp.Send
	case 2:
		wr.Opcode = qp.SendWithImm
	case 3:
		wr.Opcode, wr.RemoteAddr = qp.Write, w.y.reg.Addr+uint64(area)
	case 4:
		wr.Opcode, wr.RemoteAddr = qp.WriteWithImm, w.y.reg.Addr+uint64(area)
	case 5, 6:
		// Fenced, and the next request may write there: the result is certain.
		wr.Opcode, wr.RemoteAddr = qp.Read, w.y.reg.Addr+uint64(area)
	case 7:
		add := w.rand.Uint64() >> 8
		w.adds += add
		wr.Opcode, wr.RemoteAddr, wr.CompareAdd = qp.FetchAdd, w.y.reg.Addr+uint64(32*slotSize), add
		size = 8
	}
	wr.Flags |= qp.Fence
	if wr.Opcode == qp.Read || wr.Opcode.IsAtomic() {
		src = (32 + i%32) * slotSize
	}
	if wr.Opcode.IsAtomic() {
		wr.SGEs = []qp.SGE{w.x.sge(src, 8)}
	} else {
		wr.SGEs = w.x.split(src, size, 2)
	}
	return wr
}

// TestAnyNetworkSameResult: the same requests over networks that lose, repeat
// and reorder packets, with every MTU, give the same completions and bytes.
func TestAnyNetworkSameResult(t *testing.T) {
	s := seed(t)
	run := func(name string, mtu qp.MTU, spoil func(*vnet)) string {
		v := newNet(t, s)
		whole := func(c *Config) { c.Segment = mtu != 0 }
		x, y := v.pairOf(v.add(whole), v.add(whole), 65*slotSize, func(a, b *qp.Path) {
			a.MTU, b.MTU = max(mtu, 1), max(mtu, 1)
			a.AckTimeout = 4 // 65 us, in a network of microseconds
			a.RetryCount, b.RNRTimer = 7, 1
		})
		spoil(v)
		w := &workload{rand: rand.New(rand.NewPCG(s, 2)), v: v, x: x, y: y}
		out := w.run(t)
		st := x.h.nic.Stats()
		t.Logf("%s: %v, %d packets, %d again, %d timeouts, %d NAKs, %d duplicates, %d implied", name, v.now, st.PacketsSent, st.Retransmits, st.Timeouts,
			st.SeqNaksReceived, y.h.nic.Stats().Duplicates, st.ImpliedNaks)
		return out
	}
	want := run("good", 0, func(*vnet) {})
	for mtu := qp.MTU(0); mtu <= qp.MTU4096; mtu++ {
		for _, c := range []struct {
			name  string
			spoil func(*vnet)
		}{
			{"good", func(*vnet) {}},
			{"loss 1%", func(v *vnet) { v.drop = 0.01 }},
			{"loss 5%", func(v *vnet) { v.drop = 0.05 }},
			{"repeats", func(v *vnet) { v.duplicate = 0.2 }},
			{"reordering", func(v *vnet) { v.jitter = 2 * time.Microsecond }},
			{"all", func(v *vnet) { v.drop, v.duplicate, v.jitter = 0.01, 0.05, time.Microsecond }},
		} {
			name := fmt.Sprintf("mtu %v, %s", mtu, c.name)
			if got := run(name, mtu, c.spoil); got != want {
				t.Fatalf("%s: differs from the good network:\n%s", name, firstDiff(got, want))
			}
		}
	}
}

func firstDiff(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: got %q, want %q", i, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// TestSameSeedSameRun: a run is replayed from its seed to the last packet.
func TestSameSeedSameRun(t *testing.T) {
	s := seed(t)
	run := func(s uint64) (Stats, time.Duration) {
		v := newNet(t, s)
		x, y := v.pairOf(v.add(nil), v.add(nil), 65*slotSize, func(a, b *qp.Path) { a.AckTimeout = 4 })
		v.drop, v.jitter = 0.02, time.Microsecond
		w := &workload{rand: rand.New(rand.NewPCG(s, 2)), v: v, x: x, y: y}
		w.run(t)
		return x.h.nic.Stats(), v.now
	}
	s1, t1 := run(s)
	s2, t2 := run(s)
	if s1 != s2 || t1 != t2 {
		t.Errorf("two runs differ: %v %+v, then %v %+v", t1, s1, t2, s2)
	}
	if s3, t3 := run(s + 1); s1 == s3 && t1 == t3 {
		t.Error("another seed gave the same run")
	}
}

// TestLostAnswers drops chosen packets once and looks at the recovery.
func TestLostAnswers(t *testing.T) {
	for _, c := range []struct {
		desc string
		op   qp.Opcode
		lose Op
		at   int // which of them
		want func(x, y Stats) bool
	}{
		{"acknowledgement", qp.Write, OpAck, 0, func(x, y Stats) bool { return x.Timeouts == 1 && y.Duplicates > 0 }},
		{"middle of a message", qp.Write, OpWriteMiddle, 1, func(x, y Stats) bool { return x.SeqNaksReceived == 1 && x.Timeouts == 0 }},
		{"last packet", qp.Write, OpWriteLast, 0, func(x, y Stats) bool { return x.Timeouts == 1 && y.Duplicates == 7 }},
		{"read request", qp.Read, OpReadRequest, 0, func(x, y Stats) bool { return x.Timeouts == 1 && y.Duplicates == 0 }},
		{"read response", qp.Read, OpReadRespMiddle, 2, func(x, y Stats) bool { return x.ImpliedNaks+x.Timeouts == 1 && y.Duplicates == 1 }},
		{"atomic result", qp.FetchAdd, OpAtomicAck, 0, func(x, y Stats) bool { return x.Timeouts == 1 && y.Duplicates == 1 }},
	} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(nil), v.add(nil), 65536, nil)
		for i := range 8000 {
			x.buf[i], y.buf[i+16384] = byte(i*3), byte(i*5)
		}
		n := 0
		v.filter = func(p *Packet) bool {
			if p.Op == c.lose {
				n++
				return n-1 != c.at
			}
			return true
		}
		wr := y.remote(c.op, []qp.SGE{x.sge(0, 8000)})
		wr.ID, wr.Flags = 1, qp.Signaled
		switch c.op {
		case qp.Read:
			wr.RemoteAddr += 16384
		case qp.FetchAdd:
			wr.SGEs[0].Length, wr.CompareAdd = 8, 3
		}
		before := binary.NativeEndian.Uint64(y.buf)
		x.send(wr)
		v.idle()
		wantBrief(t, c.desc, x.poll(), "1:SUCCESS")
		if sx, sy := x.h.nic.Stats(), y.h.nic.Stats(); !c.want(sx, sy) {
			t.Errorf("%s: recovery went another way: %+v, peer %+v", c.desc, sx, sy)
		}
		switch c.op {
		case qp.Write:
			if !bytes.Equal(x.buf[:8000], y.buf[:8000]) {
				t.Errorf("%s: wrong bytes", c.desc)
			}
		case qp.Read:
			if !bytes.Equal(x.buf[:8000], y.buf[16384:24384]) {
				t.Errorf("%s: wrong bytes", c.desc)
			}
		case qp.FetchAdd:
			if got := binary.NativeEndian.Uint64(y.buf); got != before+3 {
				t.Errorf("%s: the addition ran %d times", c.desc, (got-before)/3)
			}
		}
	}
}
