//go:build linux

package kdevtest

import (
	"bytes"
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Shared is connections whose B ends take their receives from one shared receive
// queue. All A ends have the pair's first CQ, all B ends its second.
type Shared struct {
	*Pair
	SRQ  qp.SRQ
	A, B []qp.QP
}

// Shared makes n connections into a shared receive queue.
func (r *Rig) Shared(t testing.TB, n int, caps qp.SRQCaps) *Shared {
	t.Helper()
	s := &Shared{Pair: r.Connect(t, Config{})}
	var err error
	s.SRQ, err = s.PD.CreateSRQ(verbs.SRQConfig{Caps: caps})
	testdev.Supported(t, err)
	Must(t, err)
	CloseLater(t, s.SRQ)
	if c := s.SRQ.Caps(); c.RecvWR < caps.RecvWR || c.RecvSGE < caps.RecvSGE {
		t.Fatalf("capacities %+v, asked for %+v", c, caps)
	}
	for range n {
		s.add(t, nil)
	}
	return s
}

// add makes one more connection; change may alter the paths.
func (s *Shared) add(t testing.TB, change func(*qp.Path)) {
	t.Helper()
	a, b := s.extra(t, change, func(b *verbs.QPConfig) { b.SRQ = s.SRQ })
	s.A, s.B = append(s.A, a.QP), append(s.B, b.QP)
}

// post posts n receives of size bytes each, in order of their IDs from first on; ID i
// has the place i*size of B's memory.
func (s *Shared) post(t testing.TB, first, n, size int) {
	t.Helper()
	for i := first; i < first+n; i++ {
		if k, err := s.SRQ.PostRecv([]qp.RecvWR{{ID: uint64(i), SGEs: []qp.SGE{s.Pair.B.SGE(i*size, size)}}}); k != 1 || err != nil {
			t.Fatalf("receive %d: %d, %v", i, k, err)
		}
	}
}

// send sends the bytes on connection i, and waits until they were.
func (s *Shared) send(t testing.TB, i int, payload []byte) {
	t.Helper()
	if n, err := s.A[i].PostSend([]qp.SendWR{{ID: 1, Opcode: qp.Send, Flags: qp.Signaled | qp.Inline, Inline: payload}}); n != 1 || err != nil {
		t.Fatalf("send on connection %d: %v", i, err)
	}
	if c := s.Pair.A.Next(t); c.Err() != nil || c.QPNum != s.A[i].Num() {
		t.Fatalf("send on connection %d: %+v", i, c)
	}
}

// event takes the next event that is one of a type.
func event(t testing.TB, ctx verbs.Context, typ verbs.EventType) verbs.Event {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		e, err := ctx.NextEvent(limit)
		if err != nil {
			t.Fatalf("waiting for %v: %v", typ, err)
		}
		if e.Type == typ {
			return e
		}
	}
}

// SRQMessages: messages of several connections take the receives of one queue in
// order, each its own, and complete on the queue pair that they came by.
func (r *Rig) SRQMessages(t *testing.T) {
	testdev.Verb(t, "SRQ: create", "SRQ: receive")
	const conns, rounds, size = 4, 40, 64
	s := r.Shared(t, conns, qp.SRQCaps{RecvWR: 8, RecvSGE: 3})
	for _, q := range s.B {
		if c := q.Caps(); c.RecvWR != 0 || c.RecvSGE != 0 {
			t.Errorf("a queue pair of a shared receive queue has receives of its own: %+v", c)
		}
		if n, err := q.PostRecv([]qp.RecvWR{{}}); n != 0 || err != qp.ErrSharedRecv {
			t.Errorf("receive on its queue pair: %d, %v", n, err)
		}
	}
	for i := range rounds {
		conn := i * 3 % conns
		off := i * size
		sges := []qp.SGE{s.Pair.B.SGE(off, 5), s.Pair.B.SGE(off+5, 0), s.Pair.B.SGE(off+5, size-5)}
		if n, err := s.SRQ.PostRecv([]qp.RecvWR{{ID: uint64(i), SGEs: sges}}); n != 1 || err != nil {
			t.Fatalf("receive %d: %v", i, err)
		}
		payload := bytes.Repeat([]byte{byte(i + 1)}, i%size)
		s.send(t, conn, payload)
		c := s.Pair.B.Next(t)
		if c.Err() != nil || c.ID != uint64(i) || c.QPNum != s.B[conn].Num() || c.Opcode != cq.Recv || int(c.ByteLen) != len(payload) {
			t.Fatalf("message %d on connection %d (%#x): %+v", i, conn, uint32(s.B[conn].Num()), c)
		}
		if !bytes.Equal(s.Pair.B.Mem[off:off+len(payload)], payload) {
			t.Errorf("message %d: data differs", i)
		}
	}
	// A WRITE with immediate takes a receive, too.
	if n, err := s.SRQ.PostRecv([]qp.RecvWR{{ID: 99}}); n != 1 || err != nil {
		t.Fatal(err)
	}
	w := qp.SendWR{ID: 2, Opcode: qp.WriteWithImm, Imm: 0xcafe, Flags: qp.Signaled, SGEs: []qp.SGE{s.Pair.A.SGE(0, 8)}, RemoteAddr: s.Pair.B.MR.Addr, RKey: s.Pair.B.MR.RKey}
	if n, err := s.A[1].PostSend([]qp.SendWR{w}); n != 1 || err != nil {
		t.Fatal(err)
	}
	if c := s.Pair.B.Next(t); c.Err() != nil || c.ID != 99 || c.Imm != 0xcafe || c.Opcode != cq.RecvWriteWithImm {
		t.Errorf("WRITE with immediate: %+v", c)
	}
	if c := s.Pair.A.Next(t); c.Err() != nil {
		t.Error(c.Err())
	}
}

// SRQFull: the queue takes as many receives as it has room for, and again as many
// when those were used.
func (r *Rig) SRQFull(t *testing.T) {
	testdev.Verb(t, "SRQ: receive")
	s := r.Shared(t, 1, qp.SRQCaps{RecvWR: 6, RecvSGE: 2})
	caps := s.SRQ.Caps()
	if n, err := s.SRQ.PostRecv([]qp.RecvWR{{SGEs: make([]qp.SGE, caps.RecvSGE+1)}}); n != 0 || err != qp.ErrTooManySGEs {
		t.Errorf("one segment too many: %d, %v", n, err)
	}
	wrs := make([]qp.RecvWR, caps.RecvWR+1)
	for round := range 3 {
		for i := range wrs {
			wrs[i] = qp.RecvWR{ID: uint64(round*100 + i), SGEs: []qp.SGE{s.Pair.B.SGE(0, 8)}}
		}
		if n, err := s.SRQ.PostRecv(wrs); n != caps.RecvWR || err != qp.ErrQueueFull {
			t.Fatalf("round %d: posted %d, %v; want %d and a full queue", round, n, err, caps.RecvWR)
		}
		for i := range caps.RecvWR {
			s.send(t, 0, []byte("x"))
			if c := s.Pair.B.Next(t); c.Err() != nil || c.ID != wrs[i].ID {
				t.Fatalf("round %d, message %d: %+v", round, i, c)
			}
		}
	}
}

// SRQLimit: one event comes when fewer receives are left than the limit, and none
// more until it is armed again.
func (r *Rig) SRQLimit(t *testing.T) {
	testdev.Verb(t, "SRQ: limit", "SRQ: query", "device: event of an SRQ")
	s := r.Shared(t, 2, qp.SRQCaps{RecvWR: 16, RecvSGE: 1})
	if err := s.SRQ.Arm(s.SRQ.Caps().RecvWR + 1); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("limit beyond the queue: %v", err)
	}
	if err := s.SRQ.Arm(-1); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("negative limit: %v", err)
	}
	id, limit := 0, func() int {
		a, err := s.SRQ.Query()
		Must(t, err)
		if a.Caps != s.SRQ.Caps() {
			t.Errorf("query gives %+v, the queue has %+v", a.Caps, s.SRQ.Caps())
		}
		return a.Limit
	}
	take := func() {
		s.send(t, id%2, []byte("x"))
		if c := s.Pair.B.Next(t); c.Err() != nil || c.ID != uint64(id) {
			t.Fatalf("message %d: %+v", id, c)
		}
		id++
	}
	for range 2 {
		s.post(t, id, 8, 8)
		Must(t, s.SRQ.Arm(6))
		for range 2 { // 6 are left
			take()
		}
		if l := limit(); l != 6 {
			t.Errorf("limit is %d before its event, want 6", l)
		}
		take()
		if e := event(t, s.Ctx, verbs.EventSRQLimit); e.SRQ != s.SRQ {
			t.Errorf("event %v names %v, want %v", e, e.SRQ, s.SRQ)
		}
		if l := limit(); l != 0 {
			t.Errorf("limit is %d after its event, want none", l)
		}
		for range 5 {
			take()
		}
	}
	s.post(t, id, 2, 8)
	Must(t, s.SRQ.Arm(2))
	Must(t, s.SRQ.Arm(0)) // taken back
	take()
	take()
	s.noEvent(t, verbs.EventSRQLimit)
}

// noEvent checks that no event of the type is there.
func (p *Pair) noEvent(t testing.TB, typ verbs.EventType) {
	t.Helper()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		e, err := p.Ctx.NextEvent(now)
		if err != nil {
			return
		}
		if e.Type == typ {
			t.Errorf("unexpected event %v", e)
		}
	}
}

// SRQEmpty: a message waits until a receive is posted, or gives up.
func (r *Rig) SRQEmpty(t *testing.T) {
	testdev.Verb(t, "SRQ: requests wait for receives")
	r.without(t, testdev.RNRLoop)
	s := r.Shared(t, 1, qp.SRQCaps{RecvWR: 4, RecvSGE: 1})
	if n, err := s.A[0].PostSend([]qp.SendWR{{ID: 5, Opcode: qp.Send, Flags: qp.Signaled | qp.Inline, Inline: []byte("late")}}); n != 1 || err != nil {
		t.Fatal(err)
	}
	s.Pair.A.Empty(t)
	s.post(t, 3, 1, 8)
	if c := s.Pair.B.Next(t); c.Err() != nil || c.ID != 3 || c.ByteLen != 4 {
		t.Errorf("late receive: %+v", c)
	}
	if c := s.Pair.A.Next(t); c.Err() != nil || c.ID != 5 {
		t.Errorf("send that waited: %+v", c)
	}
	s.add(t, func(p *qp.Path) { p.NoRNRRetry, p.RNRTimer = true, 1 })
	if n, err := s.A[1].PostSend([]qp.SendWR{{ID: 6, Opcode: qp.Send, Flags: qp.Signaled}}); n != 1 || err != nil {
		t.Fatal(err)
	}
	if c := s.Pair.A.Next(t); c.ID != 6 || c.Status != cq.RNRRetryExceededError {
		t.Errorf("send without a receive: %+v", c)
	}
}

// SRQSurvivesQP: a queue pair that fails leaves the receives to the others, and says
// when it takes none any more.
func (r *Rig) SRQSurvivesQP(t *testing.T) {
	testdev.Verb(t, "QP: event of the last shared receive")
	s := r.Shared(t, 2, qp.SRQCaps{RecvWR: 8, RecvSGE: 1})
	s.post(t, 0, 3, 8)
	s.send(t, 0, []byte("first"))
	if c := s.Pair.B.Next(t); c.Err() != nil || c.ID != 0 {
		t.Fatalf("%+v", c)
	}
	Must(t, s.B[0].Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	for i := 1; i < 3; i++ {
		s.send(t, 1, []byte("other"))
		if c := s.Pair.B.Next(t); c.Err() != nil || c.ID != uint64(i) || c.QPNum != s.B[1].Num() {
			t.Errorf("receive %d after the failure of the other queue pair: %+v", i, c)
		}
	}
	r.without(t, testdev.NoLastWQE)
	if e := event(t, s.Ctx, verbs.EventLastWQEReached); e.QP != s.B[0].Num() {
		t.Errorf("event %v, want queue pair %#x", e, uint32(s.B[0].Num()))
	}
}

// SRQCloseOrder: the queue cannot be closed in use, nor its domain before it; and
// only queue pairs of its own domain may have it.
func (r *Rig) SRQCloseOrder(t *testing.T) {
	testdev.Verb(t, "SRQ: objects in use stay")
	s := r.Shared(t, 1, qp.SRQCaps{RecvWR: 4, RecvSGE: 1})
	if err := s.SRQ.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("closing in use: %v", err)
	}
	s.post(t, 0, 1, 8)
	s.send(t, 0, []byte("works"))
	if c := s.Pair.B.Next(t); c.Err() != nil {
		t.Error(c.Err())
	}
	pd, err := s.Ctx.AllocPD()
	Must(t, err)
	CloseLater(t, pd)
	other, err := pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 1, RecvSGE: 1}})
	Must(t, err)
	if err := pd.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("closing its domain: %v", err)
	}
	cfg := verbs.QPConfig{SendCQ: s.Pair.B.CQ, RecvCQ: s.Pair.B.CQ, Caps: qp.Caps{SendWR: 1, SendSGE: 1}, SRQ: other}
	if _, err := s.PD.CreateQP(cfg); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("queue pair with a queue of another domain: %v", err)
	}
	Must(t, other.Close())
	cfg.SRQ = other
	if _, err := pd.CreateQP(cfg); !errors.Is(err, qp.ErrClosed) {
		t.Errorf("queue pair with a closed queue: %v", err)
	}
	if n, err := other.PostRecv([]qp.RecvWR{{}}); n != 0 || err != qp.ErrClosed {
		t.Errorf("post on a closed queue: %d, %v", n, err)
	}
	_, queryErr := other.Query()
	for what, err := range map[string]error{"close": other.Close(), "arm": other.Arm(0), "query": queryErr} {
		if !errors.Is(err, qp.ErrClosed) {
			t.Errorf("%s of a closed queue: %v", what, err)
		}
	}
	attr, err := s.Ctx.Attr()
	Must(t, err)
	for _, caps := range []qp.SRQCaps{{}, {RecvWR: attr.MaxSRQWR + 1}, {RecvWR: 1, RecvSGE: attr.MaxSRQSGE + 1}} {
		if _, err := s.PD.CreateSRQ(verbs.SRQConfig{Caps: caps}); !errors.Is(err, verbs.ErrLimit) {
			t.Errorf("%+v: %v", caps, err)
		}
	}
}

// SRQNoAllocations: posting a shared receive and polling it allocate nothing.
func (r *Rig) SRQNoAllocations(t *testing.T) {
	s := r.Shared(t, 1, qp.SRQCaps{RecvWR: 4, RecvSGE: 1})
	sends := []qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{s.Pair.A.SGE(0, 64)}}}
	recvs := []qp.RecvWR{{SGEs: []qp.SGE{s.Pair.B.SGE(0, 64)}}}
	var buf [4]cq.Completion
	if n := testing.AllocsPerRun(100, func() {
		if n, err := s.SRQ.PostRecv(recvs); n != 1 || err != nil {
			t.Fatal(err)
		}
		if n, err := s.A[0].PostSend(sends); n != 1 || err != nil {
			t.Fatal(err)
		}
		for _, q := range []cq.CQ{s.Pair.A.CQ, s.Pair.B.CQ} {
			for n, err := q.Poll(buf[:]); n == 0; n, err = q.Poll(buf[:]) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations a round of receive, send and two polls", n)
	}
}
