package nic

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// sharedEnd is the receiving side of several connections.
type sharedEnd struct {
	*vend
	srq     *SRQ
	senders []*vend
	conns   map[qp.Num]int // by the number of our queue pair
}

// sharedOf makes n hosts that are connected to one shared receive queue of capacity
// receives.
func (v *vnet) sharedOf(n, capacity, size int) *sharedEnd {
	host := v.add(nil)
	s := &sharedEnd{vend: v.end(host, capacity*size, 1024), srq: host.nic.CreateSRQ(qp.SRQCaps{RecvWR: capacity, RecvSGE: 2}), conns: map[qp.Num]int{}}
	host.nic.DestroyQP(s.q)
	for i := range n {
		x := v.end(v.add(nil), 32*size, 1024)
		var err error
		s.q, err = host.nic.CreateQP(s.pd, s.cq, s.cq, s.srq, qp.Caps{SendWR: 4}, false)
		if err != nil {
			v.t.Fatal(err)
		}
		s.conns[s.q.Num()] = i
		v.join(x, s.vend)
		s.senders = append(s.senders, x)
	}
	return s
}

func (s *sharedEnd) post(id uint64, size int) {
	at := int(id) * size
	if n, err := s.srq.PostRecv([]qp.RecvWR{{ID: id, SGEs: []qp.SGE{s.sge(at, size/3), s.sge(at+size/3, size-size/3)}}}); n != 1 {
		s.h.net.t.Fatal(err)
	}
}

// TestSRQOverBadNetwork sends messages of several packets on several connections at
// the same time through a network that loses, doubles and reorders packets, into
// fewer shared receives than messages under way. Each arrives once, whole and in its
// connection's order.
func TestSRQOverBadNetwork(t *testing.T) {
	const conns, messages, size, receives = 5, 60, 6000, 3
	v := newNet(t, seed(t))
	v.drop, v.duplicate, v.jitter = 0.02, 0.02, 20*time.Microsecond
	s := v.sharedOf(conns, receives, size)
	for id := range uint64(receives) {
		s.post(id, size)
	}
	var sent, acked, arrived [conns]int
	payload := func(conn, i int) []byte {
		r := rand.New(rand.NewPCG(uint64(conn), uint64(i)))
		b := make([]byte, r.IntN(size+1))
		for k := range b {
			b[k] = byte(r.Uint32())
		}
		return b
	}
	for slices.Min(arrived[:]) < messages {
		for c, x := range s.senders {
			for sent[c] < messages && sent[c]-acked[c] < 4 {
				b := payload(c, sent[c])
				slot := sent[c] % 8 * size
				copy(x.buf[slot:], b)
				x.send(qp.SendWR{ID: uint64(sent[c]), Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{x.sge(slot, len(b))}})
				sent[c]++
			}
			for _, done := range x.poll() {
				if done.Status != cq.Success {
					t.Fatalf("connection %d: %+v", c, done)
				}
				acked[c]++
			}
		}
		if !v.step() {
			t.Fatalf("stuck: sent %v, arrived %v", sent, arrived)
		}
		for _, c := range s.poll() {
			conn, ok := s.conns[c.QPNum]
			if c.Status != cq.Success || !ok {
				t.Fatalf("%+v", c)
			}
			if got, want := s.buf[int(c.ID)*size:][:c.ByteLen], payload(conn, arrived[conn]); !bytes.Equal(got, want) {
				t.Fatalf("connection %d, message %d: %d bytes that are not the %d sent", conn, arrived[conn], len(got), len(want))
			}
			arrived[conn]++
			s.post(c.ID, size)
		}
	}
	if n := s.h.nic.Stats().RNRNaksSent; n == 0 {
		t.Error("the shared queue was never empty: the test tests less than it should")
	}
}

// TestSRQFailsHalfWay: a queue pair that fails in the middle of a message reports the
// receive that it took; those not taken stay for the others. One that is reset
// reports nothing.
func TestSRQFailsHalfWay(t *testing.T) {
	for _, state := range []qp.State{qp.Err, qp.Reset} {
		v := newNet(t, 1)
		s := v.sharedOf(2, 4, 4096)
		for id := range uint64(3) {
			s.post(id, 4096)
		}
		cut := 0
		v.filter = func(p *Packet) bool { // the first message's last packets are lost
			if p.DestQP == s.q.Num() || p.Op.flags()&isSend == 0 {
				return true
			}
			cut++
			return cut <= 2
		}
		first, second := s.senders[0], s.senders[1]
		first.send(qp.SendWR{ID: 1, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{first.sge(0, 4096)}})
		for cut < 4 && v.step() {
		}
		v.now += 10 * time.Microsecond
		for v.queue.Len() > 0 && v.queue[0].at < v.now {
			v.step()
		}
		half := s.h.nic.QP(first.path.DestNum)
		if err := s.h.nic.Modify(half, &qp.Attr{State: state}, qp.MaskState); err != nil {
			t.Fatal(err)
		}
		want := ""
		if state == qp.Err {
			want = "0:WR_FLUSH_ERR"
		}
		wantBrief(t, "taken receive", s.poll(), want)
		if last := slices.Contains(s.h.eventTypes(), "QP_LAST_WQE_REACHED"); last != (state == qp.Err) {
			t.Errorf("%v: events %v", state, s.h.eventTypes())
		}
		v.filter = nil
		second.send(qp.SendWR{ID: 2, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{second.sge(0, 100)}})
		for len(second.poll()) == 0 && v.step() {
		}
		wantBrief(t, "the other's message", s.poll(), "1:SUCCESS")
	}
}

// TestResizeRing moves what waits from any place of the ring, and counts on.
func TestResizeRing(t *testing.T) {
	r := rand.New(rand.NewPCG(seed(t), 2))
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 64, nil)
	next, polled := uint64(0), uint64(0)
	for range 300 {
		for range r.IntN(8) {
			if waiting := int(next - polled); waiting == 30 || waiting == y.cq.Capacity() {
				break
			}
			y.recv(qp.RecvWR{ID: next})
			x.send(qp.SendWR{Opcode: qp.Send, Flags: qp.Signaled})
			v.idle()
			x.poll()
			next++
		}
		want := 1 + r.IntN(40)
		err := y.cq.Resize(want)
		if fits := int(next-polled) <= want; fits != (err == nil) || fits && y.cq.Capacity() != want {
			t.Fatalf("resized with %d waiting to %d: %v, capacity %d", next-polled, want, err, y.cq.Capacity())
		}
		buf := make([]cq.Completion, r.IntN(8))
		for _, c := range buf[:y.cq.Poll(buf)] {
			if c.ID != polled || c.Status != cq.Success {
				t.Fatalf("completion %+v, want %d", c, polled)
			}
			polled++
		}
	}
	if y.cq.Overflowed() {
		t.Error("overflowed")
	}
}
