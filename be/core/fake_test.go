package core

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// fakeQP is a device end: requests wait until the test lets them happen.
type fakeQP struct {
	t        testing.TB
	mem      *fakeMemory
	peer     *fakeQP
	caps     qp.Caps
	state    qp.State
	retryRNR bool // wait for a receive, else fail

	sq     []sent // posted, not carried out
	acks   []sent // carried out, not acknowledged
	rq     []qp.RecvWR
	srq    *fakeSRQ        // gives the receives instead
	sends  []cq.Completion // send completions not polled
	recvs  []cq.Completion
	held   []uint64 // requests in the send queue: until their completion, or that of a later one, is polled
	rnr    int
	full   int
	closed bool
	posts  int
	imms   int
	stray  int // READs and WRITEs of memory that is not allocated for them
}

type sent struct {
	qp.SendWR
}

func newFakePair(t testing.TB, mem *fakeMemory, caps qp.Caps) (a, b *fakeQP) {
	a = &fakeQP{t: t, mem: mem, caps: caps, state: qp.RTS, retryRNR: true}
	b = &fakeQP{t: t, mem: mem, caps: caps, state: qp.RTS, retryRNR: true}
	a.peer, b.peer = b, a
	return a, b
}

func (q *fakeQP) Num() qp.Num             { return 1 }
func (q *fakeQP) Caps() qp.Caps           { return q.caps }
func (q *fakeQP) State() qp.State         { return q.state }
func (q *fakeQP) Query() (qp.Attr, error) { return qp.Attr{}, nil }
func (q *fakeQP) Close() error            { q.closed = true; q.sq, q.acks, q.rq = nil, nil, nil; return nil }

func (q *fakeQP) PostSend(wrs []qp.SendWR) (int, error) {
	q.posts++
	for i := range wrs {
		w := wrs[i]
		if err := w.Check(&q.caps); err != nil {
			return i, err
		}
		if len(q.held) == q.caps.SendWR {
			q.full++
			return i, qp.ErrQueueFull
		}
		q.held = append(q.held, w.ID)
		w.SGEs = append([]qp.SGE(nil), w.SGEs...)
		q.sq = append(q.sq, sent{SendWR: w})
		if q.state == qp.Err {
			q.flush()
		}
	}
	return len(wrs), nil
}

func (q *fakeQP) PostRecv(wrs []qp.RecvWR) (int, error) {
	for i := range wrs {
		if len(q.rq) == q.caps.RecvWR {
			return i, qp.ErrQueueFull
		}
		w := wrs[i]
		w.SGEs = append([]qp.SGE(nil), w.SGEs...)
		q.rq = append(q.rq, w)
	}
	if q.state == qp.Err {
		q.flush()
	}
	return len(wrs), nil
}

func (q *fakeQP) Modify(a *qp.Attr, mask qp.AttrMask) error {
	if a.State == qp.Err {
		q.state = qp.Err
		q.flush()
	}
	return nil
}

// flush completes everything posted, once.
func (q *fakeQP) flush() {
	for _, s := range append(q.acks, q.sq...) {
		q.sends = append(q.sends, cq.Completion{ID: s.ID, Status: cq.WRFlushError})
	}
	for _, r := range q.rq {
		q.recvs = append(q.recvs, cq.Completion{ID: r.ID, Status: cq.WRFlushError})
	}
	q.sq, q.acks, q.rq = nil, nil, nil
}

// fail ends a queue pair by a failed request.
func (q *fakeQP) fail(s sent, st cq.Status) {
	q.state = qp.Err
	for _, a := range q.acks { // those before it were good
		if a.Flags&qp.Signaled != 0 {
			q.sends = append(q.sends, cq.Completion{ID: a.ID})
		}
	}
	q.acks = nil
	q.sends = append(q.sends, cq.Completion{ID: s.ID, Status: st})
	q.flush()
}

// carry lets the oldest posted request happen at the peer.
func (q *fakeQP) carry() bool {
	if len(q.sq) == 0 || q.state != qp.RTS {
		return false
	}
	s := q.sq[0]
	p := q.peer
	if p.state == qp.Err || p.closed {
		q.sq = q.sq[1:]
		q.fail(s, cq.RetryExceededError)
		return true
	}
	rq := &p.rq
	if p.srq != nil {
		rq = &p.srq.rq
	}
	if s.Opcode.ConsumesRecv() && len(*rq) == 0 {
		q.rnr++
		if q.retryRNR {
			return false
		}
		q.sq = q.sq[1:]
		q.fail(s, cq.RNRRetryExceededError)
		return true
	}
	q.sq = q.sq[1:]
	var payload []byte
	for _, g := range s.SGEs {
		payload = append(payload, q.mem.at(g.Addr, g.Length)...)
	}
	if s.Opcode == qp.Write || s.Opcode == qp.WriteWithImm {
		if s.RKey != writeKey {
			q.t.Errorf("WRITE with rkey %d", s.RKey)
		}
		if len(payload) > 0 && !q.mem.writable(s.RemoteAddr, uint32(len(payload))) {
			q.stray++
		}
		copy(q.mem.at(s.RemoteAddr, uint32(len(payload))), payload)
	}
	if s.Opcode == qp.Read {
		g := s.SGEs[0]
		if s.RKey != readKey || !q.mem.owns(s.RemoteAddr, g.Length) || !q.mem.owns(g.Addr, g.Length) {
			q.stray++
		}
		copy(q.mem.at(g.Addr, g.Length), q.mem.at(s.RemoteAddr, g.Length))
	}
	if s.Opcode == qp.Send || s.Opcode == qp.WriteWithImm {
		r := (*rq)[0]
		*rq = (*rq)[1:]
		c := cq.Completion{ID: r.ID, ByteLen: uint32(len(payload)), Opcode: cq.Recv}
		if s.Opcode == qp.WriteWithImm {
			c.Opcode, c.Imm, c.Flags = cq.RecvWriteWithImm, s.Imm, cq.HasImm
			q.imms++
		} else {
			for _, g := range r.SGEs {
				payload = payload[copy(q.mem.at(g.Addr, g.Length), payload):]
			}
		}
		p.recvs = append(p.recvs, c)
	}
	q.acks = append(q.acks, s)
	return true
}

// ack completes the oldest request that was carried out.
func (q *fakeQP) ack() bool {
	if len(q.acks) == 0 {
		return false
	}
	s := q.acks[0]
	q.acks = q.acks[1:]
	if s.Flags&qp.Signaled != 0 {
		q.sends = append(q.sends, cq.Completion{ID: s.ID})
	}
	return true
}

// side is an engine on a fake device, and what its application sees.
type side struct {
	t      testing.TB
	name   string
	e      *Engine
	qp     *fakeQP
	mem    *fakeMemory
	quota  *fakeQuota
	opened map[*Socket]error
	in     []*Socket
	got    map[uint32][][]byte
	ended  map[*Socket]error
	refuse bool
	keep   bool // Taken is called by the test
	down   bool
	failed error
}

func (s *side) Opened(k *Socket, err error) { s.opened[k] = err }
func (s *side) Incoming(k *Socket, listener uint32, service string) (Refusal, bool) {
	if s.refuse {
		return Refusal{Reason: 1, Text: "not here"}, false
	}
	s.in = append(s.in, k)
	return Refusal{}, true
}
func (s *side) Message(k *Socket, b []byte, reserved int) {
	s.got[k.id] = append(s.got[k.id], append([]byte(nil), b...))
	s.mem.Free(b)
	k.Release(reserved)
	if !s.keep {
		s.e.Taken(k, 1)
	}
}
func (s *side) Closed(k *Socket, err error) {
	if _, twice := s.ended[k]; twice || err == nil {
		s.t.Errorf("%s: socket %d closed with %v, again %v", s.name, k.id, err, twice)
	}
	s.ended[k] = err
}
func (s *side) Failed(_ *Engine, err error) { s.failed = err }
func (s *side) Drained(*Engine)             {}
func (s *side) Down(*Engine)                { s.down = true }

const testRecvBit = 1 << 63

// poll takes one completion, of receives or of sends: their order on one queue is
// not promised.
func (s *side) poll(now time.Duration, recv bool) bool {
	from := &s.qp.sends
	if recv {
		from = &s.qp.recvs
	}
	if len(*from) == 0 {
		return false
	}
	c := (*from)[0]
	*from = (*from)[1:]
	if !recv {
		s.qp.held = slices.Delete(s.qp.held, 0, slices.Index(s.qp.held, c.ID)+1)
	}
	s.e.Complete(now, &c)
	return true
}

// arenaBytes is enough for every test here.
const arenaBytes = 16 << 20

// world is two engines, joined.
type world struct {
	t     testing.TB
	mem   *fakeMemory
	sides [2]*side
	now   time.Duration
	rng   *rand.Rand

	astray bool // READs and WRITEs may go astray: a control
}

func testConfig() Config {
	return Config{
		SendDepth: 32, RecvDepth: 16, PeerDepth: 16, EagerLimit: 1024, Fragment: 2048, Window: 8192, MaxMessage: 1 << 20, Backlog: 8, PeerBacklog: 8,
		MaxSockets: 64, Unordered: true, Get: true, Publish: true, Pack: true, PackLimit: 200, RecvBit: testRecvBit, IDBase: 5 << 32, Linger: 1000, DrainTimeout: 1000,
	}
}

func newWorld(t testing.TB, seed uint64, cfg Config) *world {
	return newWorldIn(t, newFakeMemory(arenaBytes), seed, [2]Config{cfg, cfg})
}

// newWorldIn is newWorld in this memory, of sides that may differ.
func newWorldIn(t testing.TB, mem *fakeMemory, seed uint64, cfgs [2]Config) *world {
	w := &world{t: t, mem: mem, rng: rand.New(rand.NewPCG(seed, 1))}
	a, b := newFakePair(t, w.mem, qp.Caps{})
	for i, q := range []*fakeQP{a, b} {
		cfg := cfgs[i]
		q.caps = qp.Caps{SendWR: cfg.SendDepth, RecvWR: cfg.RecvDepth, SendSGE: 6, RecvSGE: 2}
		s := &side{t: t, name: string(rune('A' + i)), qp: q, mem: w.mem, quota: &fakeQuota{limit: 64 << 10}, opened: map[*Socket]error{}, got: map[uint32][][]byte{}, ended: map[*Socket]error{}}
		cfg.Initiator = i == 0
		var err error
		if s.e, err = NewEngine(cfg, q, w.mem, s.quota, s); err != nil {
			t.Fatal(err)
		}
		if err := s.e.Prepare(); err != nil {
			t.Fatal(err)
		}
		w.sides[i] = s
	}
	for _, s := range w.sides {
		s.e.Start(0)
	}
	return w
}

// step lets one thing happen, drawn at random. It reports false when nothing
// could.
func (w *world) step() bool {
	start := w.rng.IntN(10)
	for k := range 10 {
		s := w.sides[(start+k)%2]
		done := false
		switch (start + k) / 2 % 5 {
		case 0:
			done = s.qp.carry()
		case 1:
			done = s.qp.ack()
		case 2:
			done = s.poll(w.now, true)
		case 3:
			done = s.poll(w.now, false)
		case 4:
			posts := s.qp.posts
			s.e.Flush(w.now)
			done = s.qp.posts != posts
		}
		w.check(s)
		if done {
			w.now++
			return true
		}
	}
	return w.tick()
}

// tick lets time pass to the next deadline within a second.
func (w *world) tick() bool {
	next := Never
	for _, s := range w.sides {
		if !s.down {
			next = min(next, s.e.Deadline())
		}
	}
	if next > w.now+1e9 {
		return false
	}
	w.now = max(w.now, next)
	for _, s := range w.sides {
		if !s.down && s.e.Deadline() <= w.now {
			s.e.Tick(w.now)
		}
	}
	return true
}

// settle runs until nothing happens any more.
func (w *world) settle() {
	for n := 0; w.step(); n++ {
		if n > 2_000_000 {
			w.t.Fatal("no end")
		}
	}
}

// check holds an engine to its invariants.
func (w *world) check(s *side) {
	c, slots := &s.e.chain, 0
	for k := c.oldest; slots < c.InFlight()+c.Pending() && k != nil; k = k.next {
		slots++
	}
	if c.Pending() < 0 || c.Free() < 0 || slots+c.Free() != int(c.depth) {
		w.t.Fatalf("%s: %d in flight, %d pending, %d free of %d, %d slots", s.name, c.InFlight(), c.Pending(), c.Free(), c.depth, slots)
	}
	if n := len(s.qp.held); c.InFlight() != n && !s.qp.closed {
		w.t.Fatalf("%s: %d requests are in flight, the device has %d", s.name, c.InFlight(), n)
	}
	most := s.e.window.most
	if a := s.e.cfg.Arrivals; a != nil { // what the receiver expects comes on top
		most += int(max(a.all.limit, 2*a.all.each))
	}
	if s.e.window.posted < 0 || s.e.window.posted > most {
		w.t.Fatalf("%s: %d bytes posted, window is %d", s.name, s.e.window.posted, s.e.window.limit)
	}
	if c := s.e.cap; c != nil && (c.posted < 0 || c.posted > max(c.limit, s.e.cfg.Fragment)) {
		w.t.Fatalf("%s: %d bytes posted over all engines, the bound is %d", s.name, c.posted, c.limit)
	}
	if s.qp.stray > 0 && !w.astray {
		w.t.Fatalf("%s: %d READs and WRITEs of memory that is not allocated for them", s.name, s.qp.stray)
	}
	if s.qp.full > 0 {
		w.t.Fatalf("%s: the queue was full at a post", s.name)
	}
	if s.e.receiving() > len(s.e.entries.bufs) {
		w.t.Fatalf("%s: %d receives posted", s.name, s.e.receiving())
	}
}

// open makes a socket from side i and gives both ends.
func (w *world) open(i int) (own, peer *Socket) { return w.openBy(i, (*Engine).Open) }

// openBy is open by one of the engine's ways to open.
func (w *world) openBy(i int, open func(*Engine, uint32, string, any) (*Socket, error)) (own, peer *Socket) {
	s, p := w.sides[i], w.sides[1-i]
	k, err := open(s.e, 1, "test", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle()
	if err, ok := s.opened[k]; !ok || err != nil {
		w.t.Fatalf("open: %v %v", ok, err)
	}
	return k, p.in[len(p.in)-1]
}

// end closes both engines and holds the memory to be given back.
func (w *world) end() {
	for _, s := range w.sides {
		s.e.Fail(w.now, ErrClosed)
	}
	w.settle()
	for _, s := range w.sides {
		if !s.down || !s.qp.closed {
			w.t.Errorf("%s is not down", s.name)
		}
		if s.quota.used != 0 {
			w.t.Errorf("%s: %d bytes of the quota are taken", s.name, s.quota.used)
		}
	}
	if len(w.mem.live) != 0 {
		w.t.Errorf("%d buffers are allocated", len(w.mem.live))
	}
}
