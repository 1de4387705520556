package nic

import (
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// forged is a packet as the peer of q would send it.
func forged(q *QP, op Op) *Packet {
	p := &Packet{SGID: q.attr.AV.DGID, DGID: q.sgid, GIDType: q.sgType, DestQP: q.num, MTU: q.attr.PathMTU, Op: op, PSN: q.recvPSN}
	if op.flags()&isResponse != 0 {
		p.PSN = q.unaPSN
	}
	return p
}

// TestStrangeRequests: requests that no correct peer sends are refused, and do
// nothing.
func TestStrangeRequests(t *testing.T) {
	for _, c := range []struct {
		desc    string
		packets func(y *vend) []*Packet
		nak     Syndrome // 0: the packet is for nobody
	}{
		{"middle without a first", func(y *vend) []*Packet { return y.packets(OpWriteMiddle, 1024) }, nakInvalid},
		{"last without a first", func(y *vend) []*Packet { return y.packets(OpSendLast, 10) }, nakInvalid},
		{"first within a message", func(y *vend) []*Packet {
			return append(y.packets(OpWriteFirst, 1024), y.packets(OpWriteFirst, 1024)...)
		}, nakInvalid},
		{"SEND within a WRITE", func(y *vend) []*Packet { return append(y.packets(OpWriteFirst, 1024), y.packets(OpSendLast, 10)...) }, nakInvalid},
		{"READ within a WRITE", func(y *vend) []*Packet { return append(y.packets(OpWriteFirst, 1024), y.packets(OpReadRequest, 0)...) }, nakInvalid},
		{"first of less than the path MTU", func(y *vend) []*Packet { return y.packets(OpWriteFirst, 1023) }, nakInvalid},
		{"only of more than the path MTU", func(y *vend) []*Packet { return y.packets(OpWriteOnly, 1025) }, nakInvalid},
		{"last of nothing", func(y *vend) []*Packet { return append(y.packets(OpWriteFirst, 1024), y.packets(OpWriteLast, 0)...) }, nakInvalid},
		{"WRITE shorter than it said", func(y *vend) []*Packet { return append(y.packets(OpWriteFirst, 1024), y.packets(OpWriteLast, 10)...) }, nakInvalid},
		{"WRITE longer than it said", func(y *vend) []*Packet {
			p := y.packets(OpWriteOnly, 100)
			p[0].Length = 99
			return p
		}, nakInvalid},
		{"WRITE of more than 2^31 bytes", func(y *vend) []*Packet {
			p := y.packets(OpWriteFirst, 1024)
			p[0].Length = 1<<31 + 1
			return p
		}, nakInvalid},
		{"READ of more than 2^31 bytes", func(y *vend) []*Packet {
			p := y.packets(OpReadRequest, 0)
			p[0].Length = 1<<32 - 1
			return p
		}, nakInvalid},
		{"atomic at an odd address", func(y *vend) []*Packet {
			p := y.packets(OpFetchAdd, 0)
			p[0].Addr++
			return p
		}, nakInvalid},
		{"from another GID", func(y *vend) []*Packet {
			p := y.packets(OpWriteOnly, 100)
			p[0].SGID[15]++
			return p
		}, 0},
		{"to another GID", func(y *vend) []*Packet {
			p := y.packets(OpWriteOnly, 100)
			p[0].DGID[15]++
			return p
		}, 0},
		{"of another RoCE version", func(y *vend) []*Packet {
			p := y.packets(OpWriteOnly, 100)
			p[0].GIDType = verbs.GIDRoCEv1
			return p
		}, 0},
		{"to another queue pair", func(y *vend) []*Packet {
			p := y.packets(OpWriteOnly, 100)
			p[0].DestQP++
			return p
		}, 0},
		{"unknown operation", func(y *vend) []*Packet { return y.packets(0x1f, 0) }, 0},
	} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(nil), v.add(nil), 8192, nil)
		_ = x
		var sent []Syndrome
		v.filter = func(p *Packet) bool {
			if p.Op == OpAck {
				sent = append(sent, p.Syndrome)
			}
			return false
		}
		y.recv(qp.RecvWR{SGEs: []qp.SGE{y.sge(4096, 4096)}})
		for i, p := range c.packets(y) {
			p.PSN = p.PSN.Add(uint32(i))
			y.h.nic.Deliver(0, p)
		}
		y.h.run()
		if c.nak == 0 {
			if len(sent) > 0 || y.q.state != qp.RTS || y.h.nic.stats.PacketsDropped != 1 {
				t.Errorf("%s: answered with %x, queue pair in %v", c.desc, sent, y.q.state)
			}
		} else if len(sent) != 1 || sent[0] != c.nak || y.q.state != qp.Err {
			t.Errorf("%s: answered with %x, queue pair in %v; want %x and ERR", c.desc, sent, y.q.state, c.nak)
		}
		if y.buf[2048] != 0 || y.buf[8] != 0 {
			t.Errorf("%s: memory changed", c.desc)
		}
	}
}

// packets is one packet of a peer, of size bytes, for a message of 2000 bytes at
// offset 1024 of the buffer.
func (e *vend) packets(op Op, size int) []*Packet {
	p := forged(e.q, op)
	p.Addr, p.RKey, p.Length = e.reg.Addr+1024, e.reg.RKey, 2000
	if op == OpWriteOnly {
		p.Length = uint32(size)
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = 0xff
	}
	p.Payload = BytesPayload(b)
	return []*Packet{p}
}

// TestStrangeAnswers: answers for packets that were never sent, or of long ago,
// complete nothing.
func TestStrangeAnswers(t *testing.T) {
	for _, c := range []struct {
		desc string
		off  int32 // PSN from the oldest packet under way
		syn  Syndrome
	}{
		{"ACK of the next packet", 1, synAck}, {"ACK far ahead", 1000, synAck}, {"old ACK", -1, synAck}, {"very old ACK", -5000, synAck},
		{"NAK far ahead", 50, nakAccess}, {"old NAK", -1, nakRemote}, {"RNR NAK far ahead", 50, synRNR | 1}, {"reserved", 0, 0x40},
	} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(nil), v.add(nil), 8192, nil)
		v.filter = func(*Packet) bool { return false }
		wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 8)})
		wr.Flags = qp.Signaled
		x.send(wr)
		p := forged(x.q, OpAck)
		p.PSN, p.Syndrome = p.PSN.Add(uint32(c.off)&uint32(qp.PSNMask)), c.syn
		x.h.nic.Deliver(0, p)
		x.h.run()
		if cs := x.poll(); len(cs) > 0 || x.q.state != qp.RTS || x.q.rnrWait {
			t.Errorf("%s: %s, queue pair in %v", c.desc, brief(cs), x.q.state)
		}
		v.filter = nil
		v.idle() // it recovers by its timer
		wantBrief(t, c.desc, x.poll(), "0:SUCCESS")
	}
}

// TestImpliedNak: an acknowledgement beyond a READ tells that its response was
// lost, long before the timer would.
func TestImpliedNak(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 8192, nil)
	lost := false
	v.filter = func(p *Packet) bool {
		if p.Op == OpReadRespOnly && !lost {
			lost = true
			return false
		}
		return true
	}
	read, write := y.remote(qp.Read, []qp.SGE{x.sge(0, 8)}), y.remote(qp.Write, []qp.SGE{x.sge(64, 8)})
	read.ID, write.ID, read.Flags, write.Flags = 1, 2, qp.Signaled, qp.Signaled
	x.send(read, write)
	for x.q.sq.una != x.q.sq.posted() && v.step() {
	}
	wantBrief(t, "sender", x.poll(), "1:SUCCESS 2:SUCCESS")
	if s := x.h.nic.Stats(); s.ImpliedNaks != 1 || s.Timeouts != 0 || v.now > time.Millisecond {
		t.Errorf("%v, %+v", v.now, s)
	}
}

// TestInflight: no more packets are under way than the PSNs can tell apart, and a
// long message asks for acknowledgements on its way.
func TestInflight(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 1<<20, func(a, b *qp.Path) { a.MTU, b.MTU = qp.MTU256, qp.MTU256 })
	wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 1<<20)})
	wr.Flags = qp.Signaled
	most := int32(0)
	v.filter = func(p *Packet) bool {
		if p.Op.flags()&isRequest != 0 {
			most = max(most, p.PSN.Sub(x.q.unaPSN)+1)
		}
		return true
	}
	x.send(wr, wr)
	v.idle()
	wantBrief(t, "sender", x.poll(), "0:SUCCESS 0:SUCCESS")
	if most > inflight || most < inflight/2 {
		t.Errorf("up to %d packets under way, want at most %d", most, inflight)
	}
	if s := x.h.nic.Stats(); s.Timeouts != 0 || s.Retransmits != 0 {
		t.Errorf("%+v", s)
	}
}

// TestSlowPeerIsNotLost: while the fabric knows that the peer has not looked at
// our packets yet, the timer takes no retry; an answer that was delivered is looked
// at before one is.
func TestSlowPeerIsNotLost(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 8192, func(a, b *qp.Path) { a.AckTimeout, a.RetryCount = 4, 1 })
	timeout := qp.AckTimeout(4).Duration()
	busy := true
	x.h.processed = func() bool { return !busy }
	var held *Packet
	v.filter = func(p *Packet) bool {
		if p.DGID == y.h.gid && held == nil {
			c := *p
			held = &c // the peer's inbox
			return false
		}
		return true
	}
	wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 8)})
	wr.Flags = qp.Signaled
	x.send(wr)
	for v.now < 100*timeout && v.step() {
	}
	if s := x.h.nic.Stats(); s.Timeouts != 0 || s.PacketsSent != 1 {
		t.Fatalf("a slow peer: %+v", s)
	}
	// The peer takes it just before our timer ends; the answer is on its way then.
	y.h.nic.Deliver(v.now, held)
	busy = false
	v.delay = 0
	y.h.run()
	v.now += timeout
	x.h.run() // the timer comes first
	v.idle()
	wantBrief(t, "sender", x.poll(), "0:SUCCESS")
	if s := x.h.nic.Stats(); s.Timeouts != 0 || s.PacketsSent != 1 {
		t.Errorf("the answer came too late: %+v", s)
	}
}

// TestCompletionOfAnEarlierLife: a completion polled after a reset frees nothing
// of the new life.
func TestCompletionOfAnEarlierLife(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 8192, nil)
	wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 8)})
	wr.Flags = qp.Signaled
	x.send(wr, wr, wr)
	v.idle() // three completions, not polled
	x.send(wr)
	for _, e := range []*vend{x, y} {
		for _, s := range []qp.State{qp.Err, qp.Reset} {
			if err := e.h.nic.Modify(e.q, &qp.Attr{State: s}, qp.MaskState); err != nil {
				t.Fatal(err)
			}
		}
	}
	v.join(x, y)
	for range 64 {
		x.send(wr)
	}
	wantBrief(t, "of the earlier life", x.poll()[:3], "0:SUCCESS 0:SUCCESS 0:SUCCESS")
	if room := x.q.sq.room(); room != 0 || x.q.State() != qp.RTS {
		t.Errorf("old completions made room for %d, state %v", room, x.q.State())
	}
	if x.q.NeedsRecvBell() {
		t.Error("receives still need a doorbell after the reset")
	}
	v.idle()
	for _, c := range x.poll() {
		if c.Status != cq.Success {
			t.Errorf("new life: %v", c.Status.Name())
		}
	}
}

// TestSeqNakCounts: a sequence error takes a retry, too. Of a packet that never
// arrives the peer tells once, then the timer does the rest.
func TestSeqNakCounts(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 8192, func(a, b *qp.Path) { a.RetryCount = 3 })
	v.filter = func(p *Packet) bool { return p.Op != OpWriteMiddle }
	wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 3000)})
	wr.ID = 1
	x.send(wr)
	for x.q.state == qp.RTS && v.steps < 10000 && v.step() {
	}
	wantBrief(t, "sender", x.poll(), "1:RETRY_EXC_ERR")
	if s := x.h.nic.Stats(); s.SeqNaksReceived != 1 || s.Timeouts != 3 {
		t.Errorf("%d NAKs and %d timeouts, want 1 and 3", s.SeqNaksReceived, s.Timeouts)
	}
}

// hold collects the requests that x sends instead of carrying them.
func hold(v *vnet, to *vend) (held *[]Packet) {
	held = new([]Packet)
	v.filter = func(p *Packet) bool {
		if p.DGID == to.h.gid {
			*held = append(*held, *p)
			return false
		}
		return true
	}
	return held
}

// TestOneBatch: several packets that the NIC takes before it answers.
func TestOneBatch(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 8192, nil)
	held := hold(v, y)
	read, bad := y.remote(qp.Read, []qp.SGE{x.sge(0, 3000)}), y.remote(qp.Write, []qp.SGE{x.sge(0, 8)})
	read.ID, bad.ID, read.Flags = 1, 2, qp.Signaled
	bad.RKey ^= 1
	x.send(read, bad)
	for i := range *held {
		y.h.nic.Deliver(v.now, &(*held)[i])
	}
	y.h.run()
	v.idle()
	wantBrief(t, "a refused request does not swallow the answer to an earlier one", x.poll(), "1:SUCCESS 2:REM_ACCESS_ERR")

	v = newNet(t, 1)
	x, y = v.pairOf(v.add(nil), v.add(nil), 8192, nil)
	held = hold(v, y)
	x.send(qp.SendWR{ID: 1, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{x.sge(0, 8)}})
	y.h.nic.Deliver(v.now, &(*held)[0]) // no receive yet
	y.recv(qp.RecvWR{ID: 2, SGEs: []qp.SGE{y.sge(0, 8)}})
	y.h.nic.Deliver(v.now, &(*held)[0]) // repeated by the network
	y.h.run()
	v.idle()
	wantBrief(t, "sender", x.poll(), "1:SUCCESS")
	wantBrief(t, "receiver", y.poll(), "2:SUCCESS")
	if s := x.h.nic.Stats(); s.RNRNaksReceived != 0 {
		t.Errorf("an RNR NAK for a message that was taken after all: %+v", s)
	}
}
