package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"
)

var errPulled = errors.New("pulled")

// TestMeshTakesTurns: nodes send large messages to each other, in all modes, while
// messages are given up, sockets and engines close and fail, devices fall silent,
// applications take nothing, and memory runs out. The account of what is expected holds
// at every moment; every message ends once, and arrives if it was said so; those of good
// peers end while others are silent; nobody waits for ever, and nothing is left.
func TestMeshTakesTurns(t *testing.T) {
	for _, seed := range seeds(t, 60) {
		if t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { meshTakesTurns(t, seed) }); t.Failed() {
			return
		}
	}
}

func meshTakesTurns(t *testing.T, seed uint64) {
	m := newMesh(t, seed)
	r := m.rng
	for range 300 {
		e := m.ends[r.IntN(len(m.ends))]
		k := e.socks[r.IntN(len(e.socks))]
		switch x := r.IntN(40); {
		case x < 14:
			for range 1 + r.IntN(3) {
				m.send(e, k, []int{8, 1000, 1025, 2048, 5000, 5000, 20_000, 60_000}[r.IntN(8)])
			}
		case x < 17 && len(e.flows) > 0:
			f := e.flows[r.IntN(len(e.flows))]
			e.e.Cancel(f.k, f.id)
			e.w.touch(e)
		case x == 17 && r.IntN(8) == 0:
			e.closed[k] = true
			e.e.CloseSocket(m.now, k)
			e.w.touch(e)
		case x == 18 && r.IntN(20) == 0:
			e.e.Fail(m.now, errPulled)
			e.w.touch(e)
		case x == 19 && r.IntN(20) == 0:
			e.e.Goodbye(m.now, m.now+5000)
			e.w.touch(e)
		case x == 20:
			e.frozen = !e.frozen
		case x == 21:
			if e.slow = !e.slow; !e.slow {
				e.take()
			}
		case x == 22:
			m.put(e, k)
		case x == 23:
			m.mem.fail = r.IntN(2) == 0
		default:
			for range r.IntN(60) {
				m.step()
			}
			m.now += time.Duration(r.IntN(100_000))
			m.mem.fail = false
		}
	}
	m.mem.fail = false
	m.settle()
	m.notice()
	for _, e := range m.ends { // of these, nobody is in the way
		if e.peer.slow || e.frozen || e.peer.frozen || m.nodes[0].quota.limit < 1<<30 {
			continue
		}
		m.allEnded(e)
	}
	for _, e := range m.ends {
		e.frozen, e.slow = false, false
		e.take()
	}
	m.settle()
	m.notice()
	for _, e := range m.ends {
		m.allEnded(e)
		for _, f := range e.flows {
			if f.err == nil && f.want && !m.got[f.id] && e.peer.failed == nil && !e.peer.closedID(f.k.id) {
				t.Errorf("message %d was sent well, and did not arrive", f.id)
			}
		}
		e.e.Fail(m.now, ErrClosed)
		e.w.touch(e)
	}
	m.settle()
	for _, n := range m.nodes {
		for _, w := range n.workers {
			if w.shared != nil {
				w.shared.Close()
			}
		}
		if n.quota.used != 0 || n.inbound.used.Load() != 0 || n.inbound.peers.Load() != 0 {
			t.Errorf("at the end %d bytes of the quota are taken, and %d bytes of %d peers expected", n.quota.used, n.inbound.used.Load(), n.inbound.peers.Load())
		}
	}
	if len(m.mem.live) != 0 {
		t.Errorf("%d buffers are allocated", len(m.mem.live))
	}
}

// notice has the other side of each engine that failed hear of it, as by the liveness line.
func (m *mesh) notice() {
	for _, e := range m.ends {
		if e.failed != nil && e.peer.failed == nil {
			e.peer.e.Fail(m.now, errPulled)
			e.peer.w.touch(e.peer)
		}
	}
	m.settle()
}

func (m *mesh) allEnded(e *meshEnd) {
	for _, f := range e.flows {
		if f.err == errPending {
			m.t.Fatalf("message %d of engine %s waits for ever", f.id, e.name)
		}
	}
}

// closedID reports whether the application closed the socket of that number.
func (e *meshEnd) closedID(id uint32) bool {
	for k := range e.closed {
		if k.id == id {
			return true
		}
	}
	return false
}

// check holds the account of arrivals to what is in the lines.
func (m *mesh) check() {
	for i, n := range m.nodes {
		used, peers := int64(0), int64(0)
		for _, w := range n.workers {
			own := int64(0)
			for in := w.arrivals.invited.head; in != nil; in = in.lineNext {
				own += int64(in.expects)
				m.inLine(in)
			}
			turns := w.arrivals.turns.n
			for _, e := range w.ends {
				if e.e.waiting.head != nil {
					turns--
				}
				for in := e.e.waiting.head; in != nil; in = in.lineNext {
					m.inLine(in)
				}
			}
			if turns != 0 {
				m.t.Fatalf("node %d: %d more engines have a turn than have messages", i, turns)
			}
			if own != w.arrivals.own {
				m.t.Fatalf("node %d: a worker expects %d bytes, its messages are %d", i, w.arrivals.own, own)
			}
			used += own
			for _, e := range w.ends {
				if e.e.inLine > 0 {
					peers++
				}
			}
		}
		if used != n.inbound.used.Load() || peers != n.inbound.peers.Load() {
			m.t.Fatalf("node %d: %d bytes of %d peers are counted, there are %d of %d", i, n.inbound.used.Load(), n.inbound.peers.Load(), used, peers)
		}
		if n.quota.used < 0 {
			m.t.Fatalf("node %d: %d bytes of the quota are taken", i, n.quota.used)
		}
	}
	for _, e := range m.ends {
		if e.qp.stray > 0 || e.qp.full > 0 || e.qp.rnr > 0 {
			m.t.Fatalf("engine %s: %d requests astray, %d without a place, %d without a receive", e.name, e.qp.stray, e.qp.full, e.qp.rnr)
		}
		if p := e.e.window.Posted(); p < 0 {
			m.t.Fatalf("engine %s: %d bytes are posted", e.name, p)
		}
	}
}

func (m *mesh) inLine(in *incoming) {
	if s := in.sock; in.state != recvWriting && in.state != recvReading || in.buf == nil || s.state == sockGone || s.e.state != engineUp {
		m.t.Fatalf("a message in a line is in state %d, its socket in %d, its engine in %d", in.state, s.state, s.e.state)
	}
}

// send queues a message of n bytes.
func (m *mesh) send(e *meshEnd, k *Socket, n int) {
	b, err := m.mem.Alloc(n)
	if err != nil {
		return // there is no room in the arena
	}
	m.last++
	id := m.last
	for i := range b {
		b[i] = byte(uint64(i)*7 + id)
	}
	if n >= 8 {
		binary.LittleEndian.PutUint64(b, id)
	}
	m.sent[id] = append([]byte(nil), b...)
	f := &meshSend{id: id, k: k, err: errPending, want: n >= 8}
	e.flows = append(e.flows, f)
	e.e.Send(k, b, 1, id, m.done(f, b))
	e.w.touch(e)
}

func (m *mesh) done(f *meshSend, b []byte) func(error) {
	return func(err error) {
		if f.err != errPending {
			m.t.Errorf("message %d ended twice, with %v and %v", f.id, f.err, err)
		}
		if f.err = err; err == nil {
			m.mem.Free(b)
		}
	}
}

// put publishes a buffer at one end and writes to it from the other, or reads it.
func (m *mesh) put(e *meshEnd, k *Socket) {
	for _, p := range e.peer.socks {
		b, err := m.mem.Alloc(3000)
		if p.id != k.id || err != nil {
			if err == nil {
				m.mem.Free(b)
			}
			continue
		}
		t, err := e.peer.e.Publish(p, b, m.mem.expose(b), func(err error) {
			if err != nil {
				m.mem.Free(b)
			}
		})
		if err != nil {
			m.mem.Free(b)
			return
		}
		for range 1 + m.rng.IntN(3) {
			b, err := m.mem.Alloc(m.rng.IntN(3000))
			if err != nil {
				return
			}
			m.last++
			f := &meshSend{id: m.last, k: k, err: errPending}
			e.flows = append(e.flows, f)
			e.e.Put(k, t, b, 1, f.id, m.done(f, b))
			e.w.touch(e)
		}
	}
}
