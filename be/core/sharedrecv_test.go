package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// fakeSRQ is the receives of many fake device ends.
type fakeSRQ struct {
	qp.SRQ
	rq   []qp.RecvWR
	most int // ever posted
}

func (q *fakeSRQ) PostRecv(wrs []qp.RecvWR) (int, error) {
	for _, w := range wrs {
		w.SGEs = append([]qp.SGE(nil), w.SGEs...)
		q.rq = append(q.rq, w)
	}
	q.most = max(q.most, len(q.rq))
	return len(wrs), nil
}

// sharers are engines on one shared queue, each joined to one with receives of its
// own: in each world, side 0 shares.
type sharers struct {
	srq    *fakeSRQ
	shared *SharedRecv
	mem    *fakeMemory
	worlds []*world
}

func newSharers(t *testing.T, seed uint64, n, receives, least int) *sharers {
	h := &sharers{srq: new(fakeSRQ), mem: newFakeMemory(arenaBytes)}
	var err error
	h.shared, err = NewSharedRecv(SharedConfig{Receives: receives, Least: least, Buffer: 1024, IDBase: testRecvBit, Touch: func(Handler) {}}, h.srq, h.mem)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		w := &world{t: t, mem: h.mem, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		a, b := newFakePair(t, h.mem, qp.Caps{SendWR: 32, RecvWR: 16, SendSGE: 6, RecvSGE: 2})
		a.srq = h.srq
		for k, q := range []*fakeQP{a, b} {
			cfg := testConfig()
			cfg.Lend, cfg.Initiator, cfg.Backlog, cfg.PeerBacklog = true, k == 0, 1<<16, 1<<16
			if k == 0 {
				cfg.Shared, cfg.RecvDepth = h.shared, least
			} else {
				cfg.PeerDepth, cfg.PeerMost = least, receives
			}
			s := &side{t: t, name: fmt.Sprint(i, k), qp: q, mem: h.mem, quota: &fakeQuota{limit: 1 << 30}, opened: map[*Socket]error{}, got: map[uint32][][]byte{}, ended: map[*Socket]error{}}
			if s.e, err = NewEngine(cfg, q, h.mem, s.quota, s); err == nil {
				err = s.e.Prepare()
			}
			if err != nil {
				t.Fatal(err)
			}
			w.sides[k] = s
			s.e.Start(0)
		}
		h.worlds = append(h.worlds, w)
	}
	return h
}

// run lets n things happen, anywhere, and time pass now and then.
func (h *sharers) run(rng *rand.Rand, n int) {
	for range n {
		w := h.worlds[rng.IntN(len(h.worlds))]
		w.step()
		if rng.IntN(50) == 0 {
			h.sweep()
		}
	}
}

// sweep looks over the shares.
func (h *sharers) sweep() {
	if d := h.shared.Deadline(); d != Never {
		h.shared.Tick(d)
	}
}

// TestSharedReceivesAnyOrder: engines on one queue, in any order of events, with bursts,
// rests, and messages both ways. What was sent arrives, and nothing finds the queue
// empty. In the control the account believes in more receives than there are.
func TestSharedReceivesAnyOrder(t *testing.T) {
	ranOut := 0
	for _, seed := range seeds(t, 30) {
		for _, extra := range []int{0, 40} {
			rng := rand.New(rand.NewPCG(seed, 12))
			n := 2 + rng.IntN(4)
			receives := 4*(n+1) + rng.IntN(20)
			h := newSharers(t, seed, n, receives, 4)
			h.shared.total += extra
			h.shared.posted += extra
			var flows [][2]flow
			var socks [][2]*Socket
			for _, w := range h.worlds {
				own, peer := w.open(rng.IntN(2))
				if own.e != w.sides[0].e {
					own, peer = peer, own
				}
				socks = append(socks, [2]*Socket{own, peer})
			}
			flows = make([][2]flow, n)
			for range 60 {
				i := rng.IntN(n)
				for range 1 + rng.IntN(30) {
					k := rng.IntN(4) / 3 // mostly to the sharing side
					h.worlds[i].send(h.worlds[i].sides[1-k], socks[i][1-k], &flows[i][k], []int{0, 64, 1000, 3000}[rng.IntN(4)], 0)
				}
				h.run(rng, rng.IntN(300))
				if p := h.shared; extra == 0 && (p.out > p.posted || p.posted > len(h.srq.rq)+inFlight(h)) {
					t.Fatalf("seed %d: %d granted, %d posted, the device has %d", seed, p.out, p.posted, len(h.srq.rq))
				}
			}
			for range 5 {
				for _, w := range h.worlds {
					w.settle()
				}
				h.sweep()
			}
			for i, w := range h.worlds {
				for k, s := range w.sides {
					if s.failed != nil && extra == 0 {
						t.Fatalf("seed %d: engine %d failed: %v", seed, i, s.failed)
					}
					if extra == 0 && s.qp.rnr != 0 {
						t.Fatalf("seed %d: %d messages found no receive", seed, s.qp.rnr)
					}
					ranOut += s.qp.rnr
					f := &flows[i][1-k]
					if f.calls != len(f.sent) && extra == 0 {
						t.Fatalf("seed %d: %d of %d messages ended", seed, f.calls, len(f.sent))
					}
				}
			}
			if extra == 0 {
				h.end(t)
			}
		}
	}
	if ranOut == 0 {
		t.Error("the control never ran out of receives: the test shows nothing")
	}
}

// inFlight is the number of receive completions that were not polled.
func inFlight(h *sharers) (n int) {
	for _, w := range h.worlds {
		n += len(w.sides[0].qp.recvs)
	}
	return n
}

// end closes all, and holds the memory to be given back.
func (h *sharers) end(t *testing.T) {
	for _, w := range h.worlds {
		for _, s := range w.sides {
			s.e.Fail(w.now, ErrClosed)
		}
		for n := 0; w.step() && n < 10000; n++ {
		}
		for _, s := range w.sides {
			if d := s.e.Deadline(); !s.down && d != Never {
				s.e.Tick(d)
			}
			if !s.down {
				t.Errorf("%s is not down", s.name)
			}
		}
	}
	if p := h.shared; p.out != 0 || p.lent != 0 || p.n != 0 {
		t.Errorf("at the end %+v", p.shares)
	}
	h.shared.Close()
	if n := len(h.mem.live); n != 0 {
		t.Errorf("%d buffers are allocated", n)
	}
}

// TestKeptReceiveIsFound: a queue pair that breaks in the middle of a message keeps a
// receive. It counts as lost until everybody has received something newer, then it is
// posted again.
func TestKeptReceiveIsFound(t *testing.T) {
	h := newSharers(t, 1, 3, 24, 4)
	rng := rand.New(rand.NewPCG(1, 13))
	var flows [3]flow
	var peers [3]*Socket
	for i, w := range h.worlds {
		_, peers[i] = w.open(0)
	}
	h.srq.rq = h.srq.rq[1:] // taken by the message that never ends
	broken := h.worlds[0].sides[0].e
	broken.Fail(h.worlds[0].now, cq.RetryExceededError)
	broken.Tick(broken.Deadline())
	if h.shared.total != 23 || len(h.shared.broken) != 1 {
		t.Fatalf("%+v", h.shared.shares)
	}
	h.worlds = h.worlds[1:]
	for i := range 200 {
		k := i % 2
		if i < 100 {
			k = 0 // the other one rests: nothing can be said yet
		}
		h.worlds[k].send(h.worlds[k].sides[1], peers[k+1], &flows[k+1], 64, 0)
		h.run(rng, 50)
		h.worlds[k].settle()
		h.shared.Tick(Never)
		if i == 99 && h.shared.total != 23 {
			t.Fatal("found while one of the engines could have had it")
		}
	}
	if p := h.shared; p.total != 24 || p.posted+len(p.free) != 24 || len(p.broken) != 0 {
		t.Errorf("%d of 24 receives, %d posted, %d free", p.total, p.posted, len(p.free))
	}
	if n := h.worlds[0].sides[1].qp.rnr + h.worlds[1].sides[1].qp.rnr; n != 0 {
		t.Errorf("%d messages found no receive", n)
	}
}

// TestHostileLending: RECALL and RETURN that were not agreed on, or of credits that
// nobody has, end the engine.
func TestHostileLending(t *testing.T) {
	h := newSharers(t, 1, 1, 16, 4)
	e := h.worlds[0].sides[0].e
	for _, n := range []uint32{5, 1 << 20, 1<<32 - 1} {
		if err := e.onLent(&wire.Header{Type: wire.Return, Sequence: n}); !errors.Is(err, ErrProtocol) {
			t.Errorf("%d credits given back of 4: %v", n, err)
		}
	}
	e.cfg.Lend = false
	for _, typ := range []wire.Type{wire.Recall, wire.Return} {
		if err := e.onLent(&wire.Header{Type: typ}); !errors.Is(err, ErrProtocol) {
			t.Errorf("%v without agreement: %v", typ, err)
		}
	}
	own := h.worlds[0].sides[1].e // has receives of its own
	if err := own.onLent(&wire.Header{Type: wire.Return}); !errors.Is(err, ErrProtocol) {
		t.Errorf("RETURN of what was not lent: %v", err)
	}
	// A message more than was granted.
	e.cfg.Lend = true
	h.shared.out -= e.share.out
	e.share.out = 0
	r := h.srq.rq[0]
	h.srq.rq = h.srq.rq[1:]
	e.Complete(1, &cq.Completion{ID: r.ID, ByteLen: wire.HeaderLen, Opcode: cq.Recv})
	if err := e.Err(); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "credits used") {
		t.Errorf("a message beyond what was granted: %v", e.Err())
	}
	if len(h.srq.rq) != 16 {
		t.Errorf("%d receives are posted after it, want 16 at once", len(h.srq.rq))
	}
}
