package ps

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// world runs replicas and clients of one shard in virtual time.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	now     time.Duration
	events  eventHeap
	serial  int
	nodes   []*node
	issued  float64 // pushes that clients began
	acked   float64 // and that were answered
	fetches int
	faults  int
	noLease bool // negative control: replicas serve whatever they heard
}

type event struct {
	at time.Duration
	n  int
	f  func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (w *world) after(d time.Duration, f func()) {
	w.serial++
	heap.Push(&w.events, event{w.now + d, w.serial, f})
}

func (w *world) run(d time.Duration) {
	for end := w.now + d; len(w.events) > 0 && w.events[0].at <= end; {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.f()
	}
}

// node is one replica. Its process may die, and begin anew with nothing, or hang.
type node struct {
	w       *world
	i       int
	peers   []*node // of the shard
	cfg     Config
	addr    string
	g       *group
	life    int
	dead    bool
	hung    bool
	queue   []func() // what it does when it no longer hangs
	waiting []waiter
}

type waiter struct {
	pos  uint64
	done func()
}

const testLease = 500 * time.Millisecond

func (n *node) boot() {
	n.life++
	n.dead, n.hung, n.queue, n.waiting = false, false, nil, nil
	s := newTestShard(n.w.t, n.cfg)
	n.g = newGroup(s, n.i, len(n.peers), 1<<15, n.w.rng.Uint64()|1, testLease)
	for i := range n.peers {
		if i != n.i {
			n.ship(i, n.life)
		}
	}
}

// do has the process do something now, or when it can.
func (n *node) do(life int, f func()) {
	switch {
	case n.dead || n.life != life:
	case n.hung:
		n.queue = append(n.queue, f)
	default:
		f()
		n.g.begin(n.w.now)
		kept := n.waiting[:0]
		for _, wt := range n.waiting {
			if n.g.settled(wt.pos, n.w.now) {
				wt.done()
			} else {
				kept = append(kept, wt)
			}
		}
		n.waiting = kept
	}
}

func (n *node) delay() time.Duration {
	return 100*time.Microsecond + time.Duration(n.w.rng.Int64N(int64(2*time.Millisecond)))
}

// ship is the link to a peer: what the driver does.
func (n *node) ship(i, life int) {
	w := n.w
	again := func() { w.after(testLease/32, func() { n.ship(i, life) }) }
	n.do(life, func() {
		sent, req := w.now, n.g.request(nil, i)
		over := false
		fail := func() {
			n.do(life, func() {
				if !over {
					over = true
					n.g.failed(i, w.now)
					again()
				}
			})
		}
		w.after(testLease/4, fail)
		p := n.peers[i]
		if p.dead { // refused at once
			w.after(n.delay(), fail)
			return
		}
		if w.rng.IntN(50) == 0 {
			w.after(n.delay(), fail) // the connection broke
			return
		}
		peerLife := p.life
		w.after(n.delay(), func() {
			p.do(peerLife, func() {
				ans, err := p.g.answer(nil, req, w.now)
				if err != nil {
					w.t.Fatal(err)
				}
				if w.rng.IntN(50) == 0 {
					w.after(n.delay(), fail) // it broke under the answer
					return
				}
				w.after(n.delay(), func() {
					n.do(life, func() {
						if over {
							return
						}
						over = true
						if err := n.g.reply(i, ans, sent); err != nil {
							w.t.Fatal(err)
						}
						if n.g.source() == i {
							n.copy(p, life)
						}
						again()
					})
				})
			})
		})
	})
}

// copy copies a peer, at once.
func (n *node) copy(p *node, life int) {
	if p.dead || p.hung || p.g.joining {
		return
	}
	var b bytes.Buffer
	head := p.g.head()
	m := p.g.shard.image(head.brought())
	b.Write(head.append(nil))
	if err := m.write(&b); err != nil {
		n.w.t.Fatal(err)
	}
	m.release()
	head, err := readCopyHead(&b)
	if err != nil {
		n.w.t.Fatal(err)
	}
	d, err := n.g.shard.read(&b, n.g.shard.own, &head)
	if err != nil {
		n.w.t.Fatal(err)
	}
	n.g.install(d, p.i, &head, n.w.now)
}

// client pushes one after the other, each until it is answered, and fetches in between.
func (w *world) client(id ClientID, seq uint64, pushes int) {
	if pushes == 0 {
		return
	}
	w.issued++
	req := testPush(requestID{id, seq}, w.rng.Uint64N(5))
	answered := false
	var try func()
	try = func() {
		if answered {
			return
		}
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		life := n.life
		w.after(n.delay(), func() {
			n.do(life, func() {
				pos, err := n.g.push(bytes.Clone(req), w.now)
				if err != nil {
					return
				}
				n.waiting = append(n.waiting, waiter{pos, func() {
					if w.rng.IntN(10) == 0 {
						return // the answer is lost
					}
					w.after(n.delay(), func() {
						if !answered {
							answered = true
							w.acked++
							w.after(n.delay(), func() { w.client(id, seq+1, pushes-1) })
						}
					})
				}})
			})
		})
		w.after(20*time.Millisecond+n.delay(), try)
	}
	try()
}

// fetch checks that a replica that serves has every push that was answered.
func (w *world) fetch() {
	for _, n := range w.nodes {
		if n.dead || n.hung {
			continue
		}
		if n.g.joining || n.g.serves(w.now) != nil && !w.noLease {
			continue
		}
		w.fetches++
		if got := n.g.shard.sum(5); got < w.acked || got > w.issued {
			panic(lostPush(fmt.Sprintf("at %v: replica %d has %v pushes, %v were answered of %v", w.now, n.i, got, w.acked, w.issued)))
		}
	}
	w.after(time.Millisecond, w.fetch)
}

type lostPush string

// caught is deferred by what runs a world, and says which push was lost.
func caught(lost *string) {
	if r := recover(); r != nil {
		l, ok := r.(lostPush)
		if !ok {
			panic(r)
		}
		*lost = string(l)
	}
}

// fault kills or hangs a replica while another serves, and heals it.
func (w *world) fault() {
	again := func() { w.after(time.Duration(w.rng.Int64N(int64(2*time.Second))), w.fault) }
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	for _, p := range w.nodes {
		if p.dead || p.hung || p.g.joining || p.g.serves(w.now) != nil {
			again()
			return
		}
	}
	w.strike(n, 3*time.Second, again)
}

// strike kills or hangs a replica, and heals it before so long.
func (w *world) strike(n *node, most time.Duration, healed func()) {
	w.faults++
	long := time.Duration(w.rng.Int64N(int64(most)))
	if w.rng.IntN(2) == 0 {
		n.dead = true
		w.after(long, func() { n.boot(); healed() })
		return
	}
	n.hung = true
	w.after(long, func() {
		n.hung = false
		queue := n.queue
		n.queue = nil
		for _, f := range queue {
			n.do(n.life, f)
		}
		healed()
	})
}

func runWorld(t testing.TB, seed uint64, replicas int, noLease bool) (w *world, lost string) {
	defer caught(&lost)
	w = &world{t: t, rng: rand.New(rand.NewPCG(seed, 5)), noLease: noLease}
	for i := range replicas {
		w.nodes = append(w.nodes, &node{w: w, i: i})
	}
	for _, n := range w.nodes {
		n.peers = w.nodes
		n.boot()
	}
	for c := range uint64(3) {
		w.client(ClientID{c + 1, seed}, 1, 1000)
	}
	w.fetch()
	w.after(time.Second, w.fault)
	for w.acked < 3000 && w.now < 2*time.Minute {
		w.run(time.Second)
	}
	w.run(6 * time.Second)
	return w, ""
}

// TestReplicas: replicas die, hang and return while clients push and repeat; no answered
// push is missing at a replica that serves, and in the end each has every push once. The
// control: replicas that serve without a lease show old rows.
func TestReplicas(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() || slowed {
		seeds = 20
	}
	faults := 0
	for seed := range seeds {
		w, lost := runWorld(t, seed, 2, false)
		if lost != "" {
			t.Fatalf("seed %d: %s", seed, lost)
		}
		faults += w.faults
		if w.acked != 3000 || w.fetches < 1000 {
			t.Errorf("seed %d: %v of %v pushes were answered, %d fetches", seed, w.acked, w.issued, w.fetches)
		}
		for _, n := range w.nodes {
			if !n.dead && !n.hung && !n.g.joining && n.g.serves(w.now) == nil && n.g.shard.sum(5) != 3000 {
				t.Errorf("seed %d: replica %d has %v pushes of 3000", seed, n.i, n.g.shard.sum(5))
			}
			if n.g.forgot != 0 || n.g.trouble != nil {
				t.Errorf("seed %d: replica %d: %d forgotten, %v", seed, n.i, n.g.forgot, n.g.trouble)
			}
		}
	}
	if faults < 2*int(seeds) {
		t.Errorf("%d faults in %d runs", faults, seeds)
	}
	seen := 0
	for seed := range uint64(10) {
		if _, lost := runWorld(t, seed, 2, true); lost != "" {
			seen++
		}
	}
	if seen == 0 {
		t.Error("control: nothing is seen to be old without leases")
	}
}
