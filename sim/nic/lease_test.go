package nic

import (
	"testing"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// TestFlushWaitsForReader: a peer copies from a request's memory while its queue
// pair fails. The request comes back only after that copy.
func TestFlushWaitsForReader(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
	wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 100)})
	wr.ID = 1
	x.send(wr)
	if !x.q.lease.acquire() { // the copy begins
		t.Fatal("memory of a posted request cannot be read")
	}
	if err := (nicQP{x.q}).Modify(&qp.Attr{State: qp.Err}, qp.MaskState); err != nil {
		t.Fatal(err)
	}
	x.h.run()
	wantBrief(t, "while the copy runs", x.poll(), "")
	if x.q.lease.acquire() {
		t.Fatal("a new copy begins after the failure")
	}
	if !x.q.lease.release() {
		t.Fatal("the last reader does not know that it is")
	}
	x.h.ring(x.q)
	wantBrief(t, "after the copy", x.poll(), "1:WR_FLUSH_ERR")
}

// TestLatePacketIsVoid: a packet arrives after its request was flushed; its memory
// is no longer the sender's to give.
func TestLatePacketIsVoid(t *testing.T) {
	for _, inline := range []bool{false, true} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
		copy(x.buf, "before")
		wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 6)})
		if inline {
			wr.SGEs, wr.Flags, wr.Inline = nil, qp.Inline, x.buf[:6]
		}
		x.send(wr)
		if err := (nicQP{x.q}).Modify(&qp.Attr{State: qp.Err}, qp.MaskState); err != nil {
			t.Fatal(err)
		}
		wantBrief(t, "flush", x.poll(), "0:WR_FLUSH_ERR")
		copy(x.buf, "after!")
		v.idle()
		if got := string(y.buf[:6]); got != "\x00\x00\x00\x00\x00\x00" || y.h.nic.Stats().RevokedPayloads != 1 {
			t.Errorf("inline=%v: the peer got %q, %d packets void", inline, got, y.h.nic.Stats().RevokedPayloads)
		}
	}
}

// TestDeregisterUnderWay: deregistering memory of a request under way is an error
// of the application: no byte is read any more, and the request fails.
func TestDeregisterUnderWay(t *testing.T) {
	for _, op := range []qp.Opcode{qp.Write, qp.Send, qp.Read, qp.FetchAdd} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
		r := x.register(x.buf, rights)
		wr := y.remote(op, []qp.SGE{{Addr: r.Addr, Length: 8, LKey: r.LKey}})
		wr.ID = 1
		y.recv(qp.RecvWR{ID: 2, SGEs: []qp.SGE{y.sge(64, 64)}})
		y.buf[0] = 1
		x.send(wr)
		x.h.nic.DestroyRegion(r)
		if !r.Idle() {
			t.Fatal("not idle without a reader")
		}
		v.idle()
		wantBrief(t, op.String(), x.poll(), "1:LOC_PROT_ERR")
		if x.buf[0] != 0 {
			t.Errorf("%v wrote to memory that was deregistered", op)
		}
	}
}

// TestKeys: keys are unique, local and remote ones differ, a key of a region that
// is gone does not come back soon, and two NICs hand out different keys.
func TestKeys(t *testing.T) {
	v := newNet(t, 1)
	n := v.add(nil).nic
	pd := &PD{}
	buf := make([]byte, 4096)
	seen := map[uint32]bool{}
	var live []*Region
	for i := range 3000 {
		r, err := n.CreateRegion(pd, buf, rights)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []uint32{uint32(r.LKey), uint32(r.RKey)} {
			if seen[k] || k == 0 {
				t.Fatalf("region %d: key %#x again", i, k)
			}
			seen[k] = true
		}
		if n.local(pd, r.LKey, r.Addr, 1, true); n.remote(&QP{busy: busy{pd: pd}}, r.RKey, r.Addr, 1, mr.RemoteRead) != r {
			t.Fatalf("region %d is not found by its key", i)
		}
		if n.remote(&QP{busy: busy{pd: pd}}, mr.RKey(r.LKey), r.Addr, 1, mr.RemoteRead) != nil {
			t.Fatalf("region %d is found by its local key", i)
		}
		live = append(live, r)
		if len(live) == 3 {
			n.DestroyRegion(live[0])
			if n.remote(&QP{busy: busy{pd: pd}}, live[0].RKey, live[0].Addr, 1, mr.RemoteRead) != nil || n.Region(live[0].LKey) != nil {
				t.Fatalf("region %d is found after its end", i)
			}
			live = live[1:]
		}
	}
	other, _ := v.add(nil).nic.CreateRegion(pd, buf, rights)
	if seen[uint32(other.RKey)] {
		t.Error("another NIC gave the same key")
	}
}
