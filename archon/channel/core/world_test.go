package core

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world is a service of some replicas and one client of it in virtual time: the
// client is the code under test, servers and network are a few rules.
type world struct {
	t   *testing.T
	cfg Config
	rng *rand.Rand // of the network and the servers
	now time.Duration
	seq int
	q   events

	shared  Shared
	servers []*server
	ops     []*simCall // that run, in the order of their beginning

	calls, failed, attempts int
	verdicts                map[Verdict]int
	latencies               []time.Duration // since the last take
	timeout                 time.Duration
	repeatable              bool
}

type event struct {
	at  time.Duration
	seq int
	fn  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// server is a replica with the way to it.
type server struct {
	w       *world
	replica *Replica
	link    *Link
	conns   [TCP + 1]*simConn // by path
	armed   time.Duration     // when the link is stepped

	dead    bool
	stuck   bool    // its handlers never end, its pings are answered
	hung    bool    // it is stopped: connections stay, nothing is answered
	hole    bool    // the network loses everything
	failing Outcome // not Answered: what every call gets
	setUp   Reason  // of RDMA: why it fails
	broken  bool    // RDMA packets are lost, set-ups and connections die of it
	slow    float64 // factor on service times; 0: 1
	epoch   int     // incarnation
	known   int     // incarnation that the client saw last
	served  int
}

type simConn struct {
	s     *server
	path  Path
	epoch int
	dead  bool
	calls map[*attempt]bool
	spare bool
}

type simCall struct {
	op    Op
	began time.Duration
	armed time.Duration
	outs  [Slots]*attempt
}

type attempt struct {
	c    *simCall
	slot int
	conn *simConn
}

const oneWay = 10 * time.Microsecond

func newWorld(t *testing.T, seed uint64, n int, cfg Config) *world {
	t.Helper()
	cfg, err := cfg.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cfg: cfg, rng: rand.New(rand.NewPCG(seed, 1)), verdicts: map[Verdict]int{}, timeout: 10 * time.Second, repeatable: true}
	w.shared = Shared{Cfg: &w.cfg, Set: NewSet(&w.cfg), Budget: NewBudget(&w.cfg), Rng: rand.New(rand.NewPCG(seed, 2))}
	for i := range n {
		s := &server{w: w, replica: &Replica{ID: uint32(i + 1), Key: mix(uint64(i + 1))}, epoch: 1}
		s.link = NewLink(&w.cfg, RDMA|TCP, rand.New(rand.NewPCG(seed, uint64(100+i))))
		w.shared.Set.Add(s.replica)
		w.servers = append(w.servers, s)
		s.step()
	}
	return w
}

func (w *world) at(t time.Duration, fn func()) {
	w.seq++
	heap.Push(&w.q, event{max(t, w.now), w.seq, fn})
}

func (w *world) after(d time.Duration, fn func()) { w.at(w.now+d, fn) }

// run lets time pass.
func (w *world) run(d time.Duration) {
	until := w.now + d
	for len(w.q) > 0 && w.q[0].at <= until {
		e := heap.Pop(&w.q).(event)
		w.now = e.at
		e.fn()
	}
	w.now = until
}

// load starts calls at the given rate for d.
func (w *world) load(rate float64, d time.Duration) {
	t := w.now
	for {
		t += time.Duration(w.rng.ExpFloat64() / rate * float64(time.Second))
		if t >= w.now+d {
			break
		}
		w.at(t, w.call)
	}
	w.run(d)
}

// take gives the p99 and the count of the calls that ended since the last take.
func (w *world) take() (p99 time.Duration, n int) {
	slices.Sort(w.latencies)
	if n = len(w.latencies); n > 0 {
		p99 = w.latencies[n*99/100]
	}
	w.latencies = w.latencies[:0]
	return p99, n
}

func (w *world) call() {
	c := &simCall{began: w.now}
	c.op.Repeatable, c.op.Deadline = w.repeatable, w.now+w.timeout
	w.calls++
	w.ops = append(w.ops, c)
	w.do(c, c.op.Start(&w.shared, w.now))
}

// do is what the client's shell does for a call.
func (w *world) do(c *simCall, do Do) {
	for i := range c.outs {
		if a := c.outs[i]; do.Cancel>>i&1 == 1 && a != nil {
			w.after(0, func() { w.attemptEnds(a, Dropped) })
		}
	}
	if do.Send {
		w.attempts++
		s := w.serverOf(c.op.Replica(do.Slot))
		a := &attempt{c: c, slot: do.Slot}
		c.outs[do.Slot] = a
		if a.conn = s.conns[s.link.Use()]; a.conn == nil || a.conn.dead {
			w.after(0, func() { w.attemptEnds(a, Unsent) })
		} else {
			a.conn.calls[a] = true
			w.after(oneWay, func() { s.request(a) })
		}
	}
	if do.End {
		w.ops = slices.DeleteFunc(w.ops, func(x *simCall) bool { return x == c })
		w.latencies = append(w.latencies, w.now-c.began)
		if do.Won < 0 {
			w.failed++
			w.verdicts[do.Why]++
		}
		return
	}
	w.armCall(c)
}

func (w *world) armCall(c *simCall) {
	next := c.op.Deadline
	if t := c.op.Next(); t != 0 {
		next = min(next, t)
	}
	if next == c.armed || c.op.ended {
		return
	}
	c.armed = next
	w.at(next, func() {
		if c.armed != next || c.op.ended {
			return
		}
		c.armed = 0
		if w.now >= c.op.Deadline {
			for _, a := range c.outs { // the client's own timer ends attempts
				if a != nil {
					w.attemptEnds(a, Failed)
				}
			}
		}
		w.do(c, c.op.Step(&w.shared, w.now))
	})
}

func (w *world) attemptEnds(a *attempt, out Outcome) {
	if a.c.outs[a.slot] != a {
		return // over
	}
	a.c.outs[a.slot] = nil
	if a.conn != nil {
		delete(a.conn.calls, a)
		if out == Answered {
			a.conn.s.link.Heard(w.now, a.conn.path)
		}
		if a.conn.spare && len(a.conn.calls) == 0 {
			a.conn.dead = true
		}
	}
	do := a.c.op.Ended(&w.shared, w.now, a.slot, out)
	if do != (Do{}) || a.c.op.Next() != 0 {
		w.do(a.c, do)
	}
}

func (w *world) serverOf(r *Replica) *server { return w.servers[r.ID-1] }

// mute tells whether nothing comes through on a path.
func (s *server) mute(p Path) bool { return s.hung || s.hole || p == RDMA && s.broken }

// request is a call that reaches the server.
func (s *server) request(a *attempt) {
	if a.conn.dead || s.dead || s.mute(a.conn.path) {
		return
	}
	s.served++
	if s.stuck {
		return
	}
	work := time.Duration(4e6 * math.Exp(s.w.rng.NormFloat64()*0.4))
	if s.slow != 0 {
		work = time.Duration(float64(work) * s.slow)
	}
	s.w.after(work+oneWay, func() {
		if !a.conn.dead && !s.dead && !s.mute(a.conn.path) {
			s.w.attemptEnds(a, s.failing)
		}
	})
}

// step is what the client's shell does for a link.
func (s *server) step() {
	w := s.w
	do := s.link.Step(w.now)
	for _, p := range []Path{RDMA, TCP} {
		if do.Drop&p != 0 && s.conns[p] != nil {
			w.connDies(s.conns[p], NoReason)
		}
		if do.Spare&p != 0 {
			s.conns[p].spare, s.conns[p] = true, nil
		}
		if do.Dial&p != 0 {
			s.dial(p)
		}
		if c := s.conns[p]; do.Ping&p != 0 && c != nil {
			w.after(2*oneWay, func() {
				if !c.dead && !s.dead && !s.mute(p) && s.conns[p] == c {
					s.link.Heard(w.now, p)
					s.step()
				}
			})
		}
	}
	s.publish()
	if next := s.link.Next(); next != s.armed {
		s.armed = next
		if next < 1<<62 {
			w.at(next, func() {
				if s.armed == next {
					s.armed = -1
					s.step()
				}
			})
		}
	}
}

func (s *server) publish() {
	ready := s.link.Use() != NoPath
	news := ready && !s.replica.Ready()
	s.replica.SetReady(ready)
	if news {
		for _, c := range s.w.ops {
			s.w.after(0, func() { s.w.do(c, c.op.Ready(&s.w.shared, s.w.now)) })
		}
	}
}

func (s *server) dial(p Path) {
	w, reason, d := s.w, NoReason, 6*oneWay
	switch {
	case s.hung || s.hole:
		reason, d = TimedOut, w.cfg.DialTimeout
	case s.dead:
		reason = Unreachable
	case p == RDMA && s.broken:
		reason, d = OpenFailed, 500*time.Millisecond
	}
	epoch := s.epoch
	w.after(d, func() {
		if reason == NoReason && (s.dead || s.mute(p) || s.epoch != epoch) {
			reason = PeerLost
		}
		if p == RDMA && reason == NoReason {
			reason = s.setUp
		}
		if reason == NoReason {
			s.conns[p] = &simConn{s: s, path: p, epoch: epoch, calls: map[*attempt]bool{}}
			if s.known != 0 && s.known != epoch {
				w.shared.Set.Restarted(s.replica)
			}
			s.known = epoch
		}
		s.link.DialEnded(w.now, p, reason)
		s.step()
	})
}

// connDies ends a connection and what is on it; the link hears of the reason.
func (w *world) connDies(c *simConn, reason Reason) {
	if c.dead {
		return
	}
	c.dead = true
	if c.s.conns[c.path] == c {
		c.s.conns[c.path] = nil
		c.s.link.Lost(w.now, c.path, reason)
	}
	lost := make([]*attempt, 0, len(c.calls))
	for a := range c.calls {
		lost = append(lost, a)
	}
	slices.SortFunc(lost, func(a, b *attempt) int { return cmp.Compare(a.c.began, b.c.began) })
	for _, a := range lost {
		w.after(0, func() { w.attemptEnds(a, Lost) })
	}
}

// kill ends the server's process; its connections are reset.
func (s *server) kill() {
	s.dead = true
	for _, c := range s.conns {
		if c != nil {
			s.w.after(oneWay, func() { s.w.connDies(c, PeerLost); s.step() })
		}
	}
}

// start starts a new process at the same address.
func (s *server) start() {
	s.dead, s.hung = false, false
	s.epoch++
}

// breakRDMA has RDMA die; connections notice after their retries.
func (s *server) breakRDMA() {
	s.broken = true
	if c := s.conns[RDMA]; c != nil {
		s.w.after(500*time.Millisecond, func() {
			if s.broken {
				s.w.connDies(c, RetryExceeded)
				s.step()
			}
		})
	}
}
