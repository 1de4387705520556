package ps

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
)

const (
	moveShards = 4 // the last one begins without keys
	moveKeys   = 24
)

// moveWorld runs shards, clients and coordinators of changes of the map in virtual time.
type moveWorld struct {
	*world
	nodes         []*node
	newest        *Map
	changes       int // that are to be made still
	done          int
	coordinators  int
	crashes       map[phase]int
	issued, acked [moveKeys]float64
	open          int // pushes that were not answered
	replicas      int // of a shard
	noFreeze      bool
	noCut         bool
	stop          bool
}

func moveAddr(shard, i int) string { return fmt.Sprintf("s%dr%d:1", shard, i) }

// moveMap draws a map of ranges of keys.
func (w *moveWorld) moveMap(version uint32, shards int) *Map {
	m := &Map{Version: version, By: ByRange, Bounds: []Bound{{0, w.rng.IntN(shards)}}}
	for key := uint64(1); key < moveKeys; key++ {
		if w.rng.IntN(5) == 0 {
			m.Bounds = append(m.Bounds, Bound{key, w.rng.IntN(shards)})
		}
	}
	for shard := range shards {
		var list []channel.Endpoint
		for i := range w.replicas {
			list = append(list, channel.Endpoint{TCP: moveAddr(shard, i)})
		}
		m.Replicas = append(m.Replicas, list)
	}
	return m
}

func newMoveWorld(t testing.TB, seed uint64) *moveWorld {
	w := &moveWorld{world: &world{t: t, rng: rand.New(rand.NewPCG(seed, 8))}, crashes: map[phase]int{}, replicas: 1 + int(seed)%3}
	first := w.moveMap(1, moveShards-1)
	w.newest = first
	for shard := range moveShards {
		var of []*node
		for i := range w.replicas {
			n := &node{w: w.world, i: i, cfg: Config{Shard: shard, Map: first}, addr: moveAddr(shard, i)}
			of = append(of, n)
		}
		for _, n := range of {
			n.peers = of
			n.boot()
			w.move(n)
		}
		w.nodes = append(w.nodes, of...)
	}
	return w
}

func (w *moveWorld) at(addr string) *node {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *node) bool { return n.addr == addr })]
}

// move is what the mover does, in every life of the node.
func (w *moveWorld) move(n *node) {
	again := func(d time.Duration) { w.after(d, func() { w.move(n) }) }
	if n.dead || n.hung {
		again(5 * time.Millisecond)
		return
	}
	g, life := n.g, n.life
	if g.shard.sweep.active {
		g.shard.sweepStep()
		again(time.Millisecond)
		return
	}
	i := g.nextPull()
	if i < 0 {
		again(3 * time.Millisecond)
		return
	}
	st := g.stage
	ask, from := g.askPull(nil, i), w.at(st.sources[i].addr)
	over := false
	answer := func(b []byte, err error) {
		n.do(life, func() {
			if !over {
				over = true
				g.pulled(st, i, b, err)
			}
		})
	}
	gone := errors.New("gone")
	w.call(n, life, from, func() ([]byte, error) {
		r, err := parsePull(ask)
		if err != nil {
			w.t.Fatal(err)
		}
		return from.g.pull(nil, r)
	}, answer)
	w.after(testLease, func() { answer(nil, gone) })
	again(time.Duration(w.rng.Int64N(int64(10 * time.Millisecond))))
}

// call has a node do something, and gives what comes of it to answer: perhaps not, perhaps
// late, and perhaps the node does it again later. n is nil, or who calls.
func (w *moveWorld) call(n *node, life int, to *node, f func() ([]byte, error), answer func([]byte, error)) {
	delay := func() time.Duration { return to.delay() }
	if w.rng.IntN(400) == 0 {
		return // it is lost
	}
	toLife := to.life
	w.after(delay(), func() {
		to.do(toLife, func() {
			b, err := f()
			if w.rng.IntN(400) != 0 {
				w.after(delay(), func() { answer(bytes.Clone(b), err) })
			}
		})
	})
	if w.rng.IntN(30) == 0 {
		w.after(delay()+time.Duration(w.rng.Int64N(int64(time.Second))), func() {
			if !to.dead {
				to.do(to.life, func() { f() })
			}
		})
	}
}

// coordinate makes one change after the other.
func (w *moveWorld) coordinate() {
	if w.changes == 0 || w.stop {
		return
	}
	next := w.moveMap(w.newest.Version+1+w.rng.Uint32N(2), moveShards-w.rng.IntN(2))
	for len(next.Replicas) < len(w.newest.Replicas) && slices.ContainsFunc(w.newest.Bounds, func(b Bound) bool { return b.Shard == moveShards-1 }) && w.rng.IntN(2) == 0 {
		next = w.moveMap(next.Version, moveShards)
	}
	w.changes--
	w.coordinator(w.newest, next)
}

// coordinator makes a change, and perhaps dies over it, or goes on beside another one.
func (w *moveWorld) coordinator(from, to *Map) {
	w.coordinators++
	c, err := newCoordinator(from, to, w.rng.Uint32(), testLease)
	if err != nil {
		w.t.Fatal(err)
	}
	// In one phase, and the first round of it or one after, something happens.
	crash, round1, slow := phase(w.rng.IntN(int(phaseDone))), w.rng.IntN(3)+1, w.rng.IntN(3) == 0
	strike := w.rng.IntN(3) == 0
	var round func()
	round = func() {
		if w.newest.Version >= to.Version && c.phase != phaseDone && w.rng.IntN(2) == 0 {
			return // another one has done it
		}
		list, died := c.round(), false
		if c.phase == crash && c.rounds == round1 {
			w.crashes[crash]++
			crash = -1
			if strike {
				if len(list) > 0 {
					n := w.at(c.members[list[w.rng.IntN(len(list))].member].addr)
					w.after(time.Duration(w.rng.Int64N(int64(3*time.Millisecond))), func() { w.fault(n) })
				}
			} else if w.rng.IntN(2) == 0 {
				w.after(time.Duration(w.rng.Int64N(int64(time.Second))), func() { w.coordinator(from, to) })
				if died = !slow; died {
					list = list[:w.rng.IntN(len(list)+1)] // it dies in the middle of the round
				}
			}
		}
		over := died
		end := func() {
			if over {
				return
			}
			over = true
			pause, err := c.judge()
			if err != nil {
				if w.newest.Version < to.Version {
					panic(lostPush(fmt.Sprintf("at %v: %v", w.now, err)))
				}
				return
			}
			if c.phase == phaseDone {
				if w.newest.Version < to.Version {
					w.newest = to
					w.done++
					w.after(time.Duration(w.rng.Int64N(int64(300*time.Millisecond))), w.coordinate)
				}
				return
			}
			w.after(pause, round)
		}
		w.round(c, list, &over, end)
	}
	round()
}

// round sends a coordinator's requests, and notes the answers; end is called when all are
// there, or time is up, unless it is over.
func (w *moveWorld) round(c *coordinator, list []order, over *bool, end func()) {
	left := len(list)
	for _, o := range list {
		to := w.at(c.members[o.member].addr)
		req := o.req.append(nil)
		if to.dead {
			c.lost(o.member, errors.New("refused"))
			left--
			continue
		}
		w.call(nil, 0, to, func() ([]byte, error) {
			r, err := parseChange(req)
			if err != nil {
				w.t.Fatal(err)
			}
			st, err := to.g.step(&r, w.now)
			return st.append(nil), err
		}, func(b []byte, err error) {
			if *over {
				return
			}
			st, bad := parseChangeState(b)
			if err == nil {
				err = bad
			}
			if w.noCut {
				st.flags |= stateCut
			}
			if err != nil {
				c.lost(o.member, err)
			} else {
				c.took(o.member, st)
			}
			if left--; left == 0 {
				end()
			}
		})
	}
	w.after(100*time.Millisecond, func() {
		if !*over {
			for _, o := range list {
				if m := &c.members[o.member]; !m.heard {
					c.lost(o.member, errNoAnswer)
				}
			}
			end()
		}
	})
}

// movePush is a push of some keys.
func movePush(id requestID, shard int, version uint32, keys []uint64) []byte {
	b := make([]byte, pushHeader+12*len(keys))
	putRequestHeader(b, len(keys), 1, shard, 0)
	putMapVersion(b, version)
	putRequestID(b, id)
	for i, key := range keys {
		b[pushHeader+8*i] = byte(key)
		putFloat(b[pushHeader+8*len(keys):], i, -1)
	}
	return b
}

// moveClient pushes, and follows the map.
type moveClient struct {
	w    *moveWorld
	id   ClientID
	m    *Map
	seqs [moveShards]uint64
}

func (c *moveClient) push() {
	w := c.w
	if w.stop {
		return
	}
	keys := map[uint64]bool{}
	for range 1 + w.rng.IntN(3) {
		keys[w.rng.Uint64N(moveKeys)] = true
	}
	var list []uint64
	for key := range uint64(moveKeys) {
		if keys[key] {
			list = append(list, key)
			w.issued[key]++
		}
	}
	w.open++
	left := 0
	c.send(list, &left, func() {
		w.open--
		for _, key := range list {
			w.acked[key]++
		}
		w.after(time.Duration(w.rng.Int64N(int64(8*time.Millisecond))), c.push)
	})
}

// send sends the parts of a push by the client's map; done is called when all are answered.
func (c *moveClient) send(keys []uint64, left *int, done func()) {
	parts := map[int][]uint64{}
	for _, key := range keys {
		parts[c.m.Owner(key)] = append(parts[c.m.Owner(key)], key)
	}
	*left += len(parts)
	for shard := range moveShards {
		if part := parts[shard]; part != nil {
			c.seqs[shard]++
			c.part(shard, c.seqs[shard], c.m.Version, part, left, done)
		}
	}
}

func (c *moveClient) part(shard int, seq uint64, version uint32, keys []uint64, left *int, done func()) {
	w, over := c.w, false
	req := movePush(requestID{c.id, seq}, shard, version, keys)
	var try func()
	try = func() {
		if over {
			return
		}
		n := w.nodes[w.replicas*shard+w.rng.IntN(w.replicas)]
		life := n.life
		w.after(n.delay(), func() {
			n.do(life, func() {
				if w.noFreeze {
					was := n.g.change.frozen
					n.g.change.frozen = false
					defer func() { n.g.change.frozen = was }()
				}
				pos, err := n.g.push(bytes.Clone(req), w.now)
				switch newer := n.g.shard.own.m; {
				case archon.CodeOf(err) == archon.Aborted && newer.Version > version:
					w.after(n.delay(), func() {
						if over {
							return
						}
						over = true
						if c.m.Version < newer.Version {
							c.m = newer
						}
						*left--
						c.send(keys, left, done)
					})
				case archon.CodeOf(err) == archon.FailedPrecondition:
					w.t.Fatalf("at %v: %v", w.now, err)
				case err != nil:
				default:
					n.waiting = append(n.waiting, waiter{pos, func() {
						if w.rng.IntN(10) == 0 {
							return // the answer is lost
						}
						w.after(n.delay(), func() {
							if over {
								return
							}
							over = true
							if *left--; *left == 0 {
								done()
							}
						})
					}})
				}
			})
		})
		w.after(15*time.Millisecond+n.delay(), try)
	}
	try()
}

// fetch checks that whoever serves a row has every push to it that was answered.
func (w *moveWorld) fetch() {
	for _, n := range w.nodes {
		if n.dead || n.hung || n.g.serves(w.now) != nil {
			continue
		}
		s := n.g.shard
		for key := range uint64(moveKeys) {
			if s.own.serves(key, Hash(key), s.own.version()) != nil {
				continue
			}
			w.fetches++
			if got := s.value(key); got < w.acked[key] || got > w.issued[key] {
				panic(lostPush(fmt.Sprintf("at %v: %s has %v pushes of key %d, %v were answered of %v", w.now, n.addr, got, key, w.acked[key], w.issued[key])))
			}
		}
	}
	w.after(time.Millisecond, w.fetch)
}

func (s *Shard) value(key uint64) float64 {
	if n := s.table.find(key, Hash(key)); n != 0 {
		return float64(s.table.row(n)[0])
	}
	return 0
}

// fault kills or hangs a replica while the other one of its shard serves, and heals it:
// n, or of nil one that is drawn, now and then.
func (w *moveWorld) fault(n *node) {
	again := func() {}
	if n == nil {
		n = w.nodes[w.rng.IntN(len(w.nodes))]
		again = func() {
			w.after(time.Duration(w.rng.Int64N(int64(3*time.Second))), func() { w.fault(nil) })
		}
	}
	for _, p := range n.peers {
		if p.dead || p.hung || p.g.serves(w.now) != nil {
			again()
			return
		}
	}
	if w.stop || w.replicas == 1 {
		return
	}
	w.strike(n, 1500*time.Millisecond, again)
}
