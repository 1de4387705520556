package core

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// newcomer is one more engine on the shared queue, and what Prepare says.
func (h *sharers) newcomer(t *testing.T, least int) (*side, error) {
	t.Helper()
	q, _ := newFakePair(t, h.mem, qp.Caps{SendWR: 32, RecvWR: 16, SendSGE: 2, RecvSGE: 2})
	q.srq = h.srq
	cfg := testConfig()
	cfg.Lend, cfg.Shared, cfg.RecvDepth = true, h.shared, least
	s := &side{t: t, name: "newcomer", qp: q, mem: h.mem, quota: &fakeQuota{limit: 1 << 30}, opened: map[*Socket]error{}, got: map[uint32][][]byte{}, ended: map[*Socket]error{}}
	var err error
	if s.e, err = NewEngine(cfg, q, h.mem, s.quota, s); err != nil {
		t.Fatal(err)
	}
	if err = s.e.Prepare(); err == nil {
		s.e.Start(0)
	} else {
		s.e.Abort()
	}
	return s, err
}

// breaks ends an engine as when its peer is lost.
func (s *side) breaks() {
	s.e.Fail(0, cq.RetryExceededError)
	s.e.Tick(s.e.Deadline())
}

// TestPeersThatOnlyBreak: each engine that breaks counts as one that kept a receive.
// However many break one after another, without a message that would show that none was
// kept, there is room for the next.
func TestPeersThatOnlyBreak(t *testing.T) {
	h := newSharers(t, 1, 0, 24, 4)
	for i := range 200 {
		s, err := h.newcomer(t, 4)
		if err != nil {
			t.Fatalf("after %d that broke: %v: %+v", i, err, h.shared.shares)
		}
		s.breaks()
	}
	if p := h.shared; p.total != 24 || p.posted != 24 || len(p.broken) > 24 {
		t.Errorf("%+v, %d broken", p.shares, len(p.broken))
	}
	h.end(t)
}

// TestKeptReceivesOfAll: peers that break one after another keep most of the receives.
// Those that come later find them by what they receive, and post them again.
func TestKeptReceivesOfAll(t *testing.T) {
	h := newSharers(t, 1, 0, 24, 4)
	for range 16 {
		s, err := h.newcomer(t, 4)
		if err != nil {
			t.Fatal(err)
		}
		h.srq.rq = h.srq.rq[1:] // taken by a message that never ends
		s.breaks()
	}
	s, err := h.newcomer(t, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		r := h.srq.rq[0]
		h.srq.rq = h.srq.rq[1:]
		(&wire.Header{Type: wire.Credit, Granted: uint32(s.e.credits.granted)}).Put(s.e.entries.header(int(uint32(r.ID))))
		s.e.Complete(0, &cq.Completion{ID: r.ID, ByteLen: wire.HeaderLen, Opcode: cq.Recv})
		if s.e.Err() != nil {
			t.Fatalf("message %d: %v", i, s.e.Err())
		}
		h.sweep()
	}
	if p := h.shared; p.total != 24 || p.posted+len(p.free) != 24 || p.posted != len(h.srq.rq) || len(p.broken) != 0 || p.forgiven != 0 {
		t.Errorf("%+v: %d free, the device has %d, %d broken, %d forgiven", p.shares, len(p.free), len(h.srq.rq), len(p.broken), p.forgiven)
	}
}

// TestIdleEngineIsAsked: an engine that receives nothing could have each receive that is
// counted as lost. When there is no room for a newcomer because of that, its peer is
// asked to say something, and then there is.
func TestIdleEngineIsAsked(t *testing.T) {
	h := newSharers(t, 1, 1, 24, 4)
	w := h.worlds[0]
	var err error
	refused := 0
	for i := 0; i < 100; i++ {
		var s *side
		if s, err = h.newcomer(t, 4); err == nil {
			s.breaks()
			continue
		}
		if !errors.Is(err, ErrLent) {
			t.Fatalf("after %d that broke: %v", i, err)
		}
		refused++
		w.settle()
		h.sweep()
	}
	if err = w.sides[0].failed; err != nil {
		t.Fatal(err)
	}
	if refused == 0 || refused > 80 {
		t.Errorf("%d of 100 had to wait", refused)
	}
}
