package nic

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

// offering makes a net of two hosts whose drivers send by Transmit only.
func offering(t *testing.T, change func(*Config)) (v *vnet, x, y *vend, offers *[]*QP) {
	v = newNet(t, seed(t))
	offers = new([]*QP)
	with := func(c *Config) {
		c.Offer = func(q *QP) { *offers = append(*offers, q) }
		if change != nil {
			change(c)
		}
	}
	x, y = v.pairOf(v.add(with), v.add(with), 1<<16, nil)
	return v, x, y, offers
}

// drain transmits one packet at a time, in turn, and runs the net.
func (v *vnet) drain(offers *[]*QP) (sent int) {
	for v.step() || len(*offers) > 0 {
		if len(*offers) == 0 {
			continue
		}
		q := (*offers)[0]
		*offers = (*offers)[1:]
		before := q.nic.stats.PacketsSent
		if q.nic.Transmit(v.now, q, 1) {
			*offers = append(*offers, q)
		}
		if d := q.nic.stats.PacketsSent - before; d > 1 {
			v.t.Fatalf("%d packets by one Transmit of 1", d)
		}
		v.hostOf(q).run()
		sent++
	}
	return sent
}

func TestOfferLeavesSendingToTheDriver(t *testing.T) {
	v, x, y, offers := offering(t, nil)
	v.drop = 0.05 // what is lost is offered again
	for i := range x.buf[:20000] {
		x.buf[i] = byte(i * 7)
	}
	y.recv(qp.RecvWR{ID: 9, SGEs: []qp.SGE{y.sge(0, 20000)}})
	x.send(qp.SendWR{ID: 1, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{x.sge(0, 20000)}})
	if len(*offers) != 1 || x.h.nic.stats.PacketsSent != 0 {
		t.Fatalf("%d offers and %d packets after the post, want 1 and 0", len(*offers), x.h.nic.stats.PacketsSent)
	}
	x.h.ring(x.q)
	if len(*offers) != 1 {
		t.Fatal("offered twice")
	}
	if n := v.drain(offers); n < 20 {
		t.Errorf("%d transmits for 20 packets", n)
	}
	wantBrief(t, "sender", x.poll(), "1:SUCCESS")
	wantBrief(t, "receiver", y.poll(), "9:SUCCESS")
	if !bytes.Equal(x.buf[:20000], y.buf[:20000]) {
		t.Error("the bytes differ")
	}
	// One that failed meanwhile sends nothing.
	x.send(qp.SendWR{ID: 2, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{x.sge(0, 20000)}})
	if err := (nicQP{x.q}).Modify(&qp.Attr{State: qp.Err}, qp.MaskState); err != nil {
		t.Fatal(err)
	}
	before := x.h.nic.stats.PacketsSent
	if x.h.nic.Transmit(v.now, x.q, 1) || x.h.nic.stats.PacketsSent != before {
		t.Error("a failed queue pair sends")
	}
	wantBrief(t, "failed", x.poll(), "2:WR_FLUSH_ERR")
}

// TestSkipWrites: WRITEs are checked and complete, and their bytes stay away.
func TestSkipWrites(t *testing.T) {
	v, x, y, offers := offering(t, func(c *Config) { c.SkipWrites = true })
	for i := range x.buf {
		x.buf[i] = 7
	}
	y.recv(qp.RecvWR{ID: 9, SGEs: []qp.SGE{y.sge(8192, 100)}})
	x.send(
		qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{x.sge(0, 5000)}, RemoteAddr: y.reg.Addr, RKey: y.reg.RKey},
		qp.SendWR{ID: 2, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{x.sge(0, 100)}})
	v.drain(offers)
	wantBrief(t, "sender", x.poll(), "1:SUCCESS 2:SUCCESS")
	wantBrief(t, "receiver", y.poll(), "9:SUCCESS")
	if y.buf[0] != 0 || y.buf[4999] != 0 || y.buf[8192] != 7 {
		t.Error("a WRITE was copied, or a SEND was not")
	}
	x.send(qp.SendWR{ID: 3, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{x.sge(0, 50)}, RemoteAddr: y.reg.Addr + 1<<16, RKey: y.reg.RKey})
	v.drain(offers)
	wantBrief(t, "outside of the region", x.poll(), "3:REM_ACCESS_ERR")
}

func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		op   Op
		want int
	}{
		{OpSendOnly, 12}, {OpSendMiddle, 12}, {OpSendLastImm, 16}, {OpSendOnlyInv, 16}, {OpWriteFirst, 28}, {OpWriteMiddle, 12}, {OpWriteOnlyImm, 32},
		{OpWriteLastImm, 16}, {OpReadRequest, 28}, {OpReadRespFirst, 16}, {OpReadRespMiddle, 12}, {OpReadRespOnly, 16}, {OpAck, 16},
		{OpAtomicAck, 24}, {OpFetchAdd, 40}, {OpCompareSwap, 40},
	} {
		if got := c.op.HeaderBytes(); got != c.want {
			t.Errorf("%v: %d bytes, want %d", c.op, got, c.want)
		}
	}
	if !OpAck.IsAck() || !OpAtomicAck.IsAck() || OpReadRespOnly.IsAck() {
		t.Error("wrong acknowledgements")
	}
}
