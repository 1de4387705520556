package core

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/qp"
)

// mesh is several nodes that send to each other, driven as workers do it: an engine is
// flushed only if something touched it, and ticks only when its deadline has come. So
// what nobody wakes waits for ever, and shows.
type mesh struct {
	t     *testing.T
	rng   *rand.Rand
	mem   *fakeMemory
	now   time.Duration
	nodes []*meshNode
	ends  []*meshEnd
	sent  map[uint64][]byte // by their numbers
	got   map[uint64]bool
	last  uint64
}

type meshNode struct {
	quota   *meshQuota
	inbound *Inbound
	workers []*meshWorker
}

// meshQuota pokes its node's workers, as that of be does.
type meshQuota struct {
	fakeQuota
	n     *meshNode
	short bool
}

func (q *meshQuota) Reserve(n int) bool {
	ok := q.fakeQuota.Reserve(n)
	q.short = q.short || !ok
	return ok
}

func (q *meshQuota) Release(n int) {
	q.fakeQuota.Release(n)
	if q.short {
		q.short = false
		for _, w := range q.n.workers {
			w.retry = true
		}
	}
}

type meshWorker struct {
	n           *meshNode
	arrivals    *Arrivals
	scratch     *Scratch
	shared      *SharedRecv
	srq         *fakeSRQ
	ends, dirty []*meshEnd
	room, retry bool
}

func (w *meshWorker) touch(e *meshEnd) {
	if !e.dirty {
		e.dirty = true
		w.dirty = append(w.dirty, e)
	}
}

// meshEnd is one engine.
type meshEnd struct {
	*side
	m      *mesh
	w      *meshWorker
	peer   *meshEnd
	dirty  bool
	frozen bool // its device sends nothing
	slow   bool // its application takes nothing
	kept   []meshMessage
	rooms  []*Socket // whose Room is due
	socks  []*Socket
	flows  []*meshSend
	last   map[*Socket]uint64 // the newest message of an ordered socket
	closed map[*Socket]bool   // by its application
}

type meshMessage struct {
	k        *Socket
	b        []byte
	reserved int
}

// meshSend is a message and how it ended.
type meshSend struct {
	id   uint64
	k    *Socket
	err  error
	want bool // its end says whether it arrived
}

func (e *meshEnd) Message(k *Socket, b []byte, reserved int) {
	if e.kept = append(e.kept, meshMessage{k, b, reserved}); !e.slow {
		e.take()
	}
}

// take has the application take what came.
func (e *meshEnd) take() {
	for _, x := range e.kept {
		if len(x.b) >= 8 {
			id := binary.LittleEndian.Uint64(x.b)
			if !bytes.Equal(x.b, e.m.sent[id]) {
				e.m.t.Fatalf("message %d arrived changed", id)
			}
			if e.m.got[id] {
				e.m.t.Fatalf("message %d arrived twice", id)
			}
			e.m.got[id] = true
			if !x.k.unordered && id < e.last[x.k] {
				e.m.t.Fatalf("message %d arrived after %d", id, e.last[x.k])
			}
			e.last[x.k] = id
		}
		e.mem.Free(x.b)
		if x.k.Release(x.reserved) {
			e.rooms = append(e.rooms, x.k)
		}
		e.e.Taken(x.k, 1)
	}
	e.kept = e.kept[:0]
	e.w.touch(e)
}

// newMesh makes nodes, and an engine or two between each two of them, on any of their
// workers.
func newMesh(t *testing.T, seed uint64) *mesh {
	m := &mesh{t: t, rng: rand.New(rand.NewPCG(seed, 77)), mem: newFakeMemory(4 * arenaBytes), sent: map[uint64][]byte{}, got: map[uint64]bool{}}
	r := m.rng
	limit, quota := 4096+r.IntN(32768), 1<<30
	if r.IntN(3) == 0 {
		quota = 100_000
	}
	shared := r.IntN(3) == 0
	for range 2 + r.IntN(3) {
		n := new(meshNode)
		n.quota = &meshQuota{n: n, fakeQuota: fakeQuota{limit: quota}}
		workers := 1 + r.IntN(2)
		poke := func() {
			for _, w := range n.workers {
				w.room = true
			}
		}
		if workers == 1 {
			poke = nil
		}
		n.inbound = NewInbound(limit, r.IntN(2)*1500, r.Uint64(), poke)
		for range workers {
			w := &meshWorker{n: n, scratch: NewScratch(32, 16, 2, m.mem)}
			w.arrivals = NewArrivals(n.inbound, func(h Handler) { w.touch(h.(*meshEnd)) })
			if shared {
				w.srq = new(fakeSRQ)
				var err error
				w.shared, err = NewSharedRecv(SharedConfig{Receives: 64, Least: 4, Buffer: 1024, IDBase: testRecvBit, Touch: func(h Handler) { w.touch(h.(*meshEnd)) }}, w.srq, m.mem)
				if err != nil {
					t.Fatal(err)
				}
			}
			n.workers = append(n.workers, w)
		}
		m.nodes = append(m.nodes, n)
	}
	for i, a := range m.nodes {
		for _, b := range m.nodes[i+1:] {
			for range 1 + r.IntN(2) {
				m.join(a.workers[r.IntN(len(a.workers))], b.workers[r.IntN(len(b.workers))])
			}
		}
	}
	m.settle()
	for _, e := range m.ends {
		for range 1 + r.IntN(2) {
			m.open(e)
		}
	}
	m.settle()
	for _, e := range m.ends {
		e.socks = append(e.socks, e.in...)
		for _, k := range e.socks {
			e.e.SetGet(k, r.IntN(2) == 0)
		}
	}
	return m
}

func (m *mesh) join(a, b *meshWorker) {
	qa, qb := newFakePair(m.t, m.mem, qp.Caps{SendWR: 32, RecvWR: 16, SendSGE: 6, RecvSGE: 2})
	window, socketQuota := 2048<<m.rng.IntN(4), m.rng.IntN(2)*m.rng.IntN(30_000)
	var both [2]*meshEnd
	for i, w := range []*meshWorker{a, b} {
		q := []*fakeQP{qa, qb}[i]
		cfg := testConfig()
		cfg.Initiator, cfg.Arrivals, cfg.PeerExpect, cfg.Scratch = i == 0, w.arrivals, w.n.inbound.Most(), w.scratch
		cfg.Window, cfg.WindowTarget, cfg.SocketQuota = window, time.Microsecond, socketQuota
		if w.shared != nil {
			q.srq = w.srq
			cfg.Shared, cfg.RecvDepth, cfg.PeerDepth, cfg.PeerMost, cfg.Lend = w.shared, 4, 4, 64, true
		}
		e := &meshEnd{m: m, w: w, last: map[*Socket]uint64{}, closed: map[*Socket]bool{}}
		e.side = &side{t: m.t, name: fmt.Sprint(len(m.ends)), qp: q, mem: m.mem, opened: map[*Socket]error{}, got: map[uint32][][]byte{}, ended: map[*Socket]error{}}
		var err error
		if e.e, err = NewEngine(cfg, q, m.mem, w.n.quota, e); err == nil {
			err = e.e.Prepare()
		}
		if err != nil {
			m.t.Fatal(err)
		}
		w.ends = append(w.ends, e)
		m.ends = append(m.ends, e)
		both[i] = e
	}
	both[0].peer, both[1].peer = both[1], both[0]
	for _, e := range both {
		e.e.Start(m.now)
	}
}

func (m *mesh) open(e *meshEnd) {
	open := e.e.Open
	if m.rng.IntN(2) == 0 {
		open = e.e.OpenUnordered
	}
	k, err := open(1, "mesh", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	e.socks = append(e.socks, k)
	e.w.touch(e)
}

// act lets one thing happen at one engine, false if there was nothing.
func (m *mesh) act(e *meshEnd, kind int) bool {
	switch kind {
	case 0:
		return !e.frozen && e.qp.carry()
	case 1:
		return e.qp.ack()
	case 2:
		if !e.down || e.w.shared == nil {
			if !e.poll(m.now, true) {
				return false
			}
		} else if len(e.qp.recvs) > 0 {
			e.w.shared.Discard(&e.qp.recvs[0])
			e.qp.recvs = e.qp.recvs[1:]
		} else {
			return false
		}
		e.w.touch(e)
		return true
	case 3:
		if e.poll(m.now, false) {
			e.w.touch(e)
			return true
		}
	case 4:
		return m.turn(e.w)
	}
	return false
}

// turn is what a worker does beside taking completions.
func (m *mesh) turn(w *meshWorker) (busy bool) {
	if w.retry {
		w.retry, busy = false, true
		for _, e := range w.ends {
			if e.e.Held() > 0 {
				e.e.Retry(m.now)
				w.touch(e)
			}
		}
	}
	for _, e := range w.ends {
		for _, k := range e.rooms {
			busy = true
			e.e.Room(m.now, k)
			w.touch(e)
		}
		e.rooms = e.rooms[:0]
	}
	if w.room {
		w.room, busy = false, true
		w.arrivals.Admit(m.now)
	}
	if w.shared != nil && w.shared.Deadline() <= m.now {
		w.shared.Tick(m.now)
		busy = true
	}
	for _, e := range w.ends {
		if e.e.Deadline() <= m.now {
			e.e.Tick(m.now)
			w.touch(e)
		}
	}
	for i := 0; i < len(w.dirty); i++ {
		e := w.dirty[i]
		e.dirty, busy = false, true
		e.e.Flush(m.now)
	}
	w.dirty = w.dirty[:0]
	return busy
}

// step lets one thing happen, drawn at random, or time pass. It reports false when
// nothing is left.
func (m *mesh) step() bool {
	first, kind := m.rng.IntN(len(m.ends)), m.rng.IntN(5)
	for k := range 5 {
		for i := range m.ends {
			if m.act(m.ends[(first+i)%len(m.ends)], (kind+k)%5) {
				m.now++
				m.check()
				return true
			}
		}
	}
	next := Never
	for _, n := range m.nodes {
		for _, w := range n.workers {
			for _, e := range w.ends {
				next = min(next, e.e.Deadline())
			}
			if w.shared != nil {
				next = min(next, w.shared.Deadline())
			}
		}
	}
	if next > m.now+1e9 {
		return false
	}
	m.now = max(m.now, next)
	return true
}

// settle runs until nothing happens any more, or for a while: an engine with a message
// that waits for memory looks for it again and again.
func (m *mesh) settle() {
	for end := m.now + 200*time.Millisecond; m.step() && m.now < end; {
	}
}
