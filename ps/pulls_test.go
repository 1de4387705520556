package ps

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
)

// TestPullsBothWays: two shards that exchange rows bring them while the other one still
// removes some, which moves others to other places of its index; also when one begins
// anew, because the other has forgotten what it sent.
func TestPullsBothWays(t *testing.T) {
	const keys = 5000 // of each: more than a window has
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 11))
		from := &Map{Version: 1, By: ByRange, Bounds: []Bound{{0, 0}, {keys, 1}}, Replicas: append(mapOf(1).Replicas, nil)}
		to := &Map{Version: 2, By: ByRange, Bounds: []Bound{{0, 1}, {keys, 0}}, Replicas: from.Replicas}
		var groups [2]*group
		for shard := range groups {
			s := newTestShard(t, Config{Map: from, Shard: shard, MaxRows: 4 * keys})
			groups[shard] = newGroup(s, 0, 1, 1<<20, 9, testLease)
			for key := range uint64(2 * keys) {
				if _, err := s.load(key, []float32{float32(key)}); err != nil {
					t.Fatal(err)
				}
			}
			groups[shard].beginChange(7, to)
		}
		for shard, g := range groups {
			g.bring(7, to, []stageSource{{shard: 1 - shard}})
		}
		forgets := 6 + rng.IntN(24)
		for step := 0; !groups[0].stage.done || !groups[1].stage.done; step++ {
			if step > 1000 {
				t.Fatalf("seed %d: there is no end of it: %+v, %+v", seed, groups[0].stage, groups[1].stage)
			}
			if step == forgets {
				groups[0].endChange()
				groups[0].beginChange(7, to)
			}
			shard := step % 2
			g, source := groups[shard], groups[1-shard]
			if step > 60 {
				g.finish(7)
			}
			if g.shard.sweep.active {
				g.shard.sweepStep()
				continue
			}
			i := g.nextPull()
			if i < 0 {
				continue
			}
			r, err := parsePull(g.askPull(nil, i))
			if err != nil {
				t.Fatal(err)
			}
			window, err := source.pull(nil, r)
			if rng.IntN(4) == 0 { // the answer comes when it copies a peer, which it is to begin anew after
				g.joining = true
				g.pulled(g.stage, i, nil, errPullLost)
				g.joining = false
				continue
			}
			g.pulled(g.stage, i, window, err)
		}
		for shard, g := range groups {
			for key := range uint64(2 * keys) {
				if g.shard.table.find(key, Hash(key)) == 0 {
					t.Fatalf("seed %d: shard %d lacks key %d", seed, shard, key)
				}
			}
		}
	}
}

// TestLaggingReplica: a replica that lacks the end of a change takes no map of a later one
// but from its peers; and one that has prepared the earlier change does not give it up.
func TestLaggingReplica(t *testing.T) {
	s := newTestShard(t, Config{Map: mapOf(2)})
	g := newGroup(s, 0, 1, 1<<12, 9, testLease)
	s.own.before = mapOf(1)
	if err := g.commit(7, mapOf(3), 0); err != nil || s.own.version() != 2 {
		t.Errorf("map version %d, %v: rows that version 2 brought are not served ever", s.own.version(), err)
	}
	s.own.open()
	if err := g.commit(7, mapOf(3), 0); err != nil || s.own.version() != 3 {
		t.Errorf("map version %d, %v", s.own.version(), err)
	}

	from, to := mapOf(2), mapOf(3)
	for _, m := range []*Map{from, to} {
		m.Replicas[0] = []channel.Endpoint{{TCP: "a:1"}, {TCP: "b:1"}}
	}
	c, err := newCoordinator(from, to, 1, testLease)
	if err != nil {
		t.Fatal(err)
	}
	for version, gives := range map[uint32]bool{1: false, 2: true} {
		c.took(0, changeState{inc: 1, version: 2, replicas: 2})
		c.took(1, changeState{inc: 2, version: version, self: 1, replicas: 2, next: 5, flags: statePrepared})
		c.members[0].ends, c.members[1].ends = false, false
		if err := c.alone(); err != nil || c.members[1].ends != gives {
			t.Errorf("a replica with map version %d gives up what it prepared: %t, %v", version, c.members[1].ends, err)
		}
	}
}

// TestPullsBounded: pullers with ever other numbers take no more memory.
func TestPullsBounded(t *testing.T) {
	now := NewMap(ByHash, nil, nil)
	next := *now
	next.Version, next.Bounds = 2, []Bound{{0, 1}}
	g := newGroup(newTestShard(t, Config{Map: now}), 0, 1, 1<<12, 9, testLease)
	g.beginChange(1<<32, &next)
	err := error(nil)
	for puller := range uint64(2 * maxPulls) {
		_, err = g.pull(nil, pullRequest{ticket: 1 << 32, puller: 1 + puller, to: 1})
	}
	if n := len(g.change.pulls.by); n > maxPulls || !errors.Is(err, archon.ResourceExhausted) {
		t.Errorf("%d pullers, %v", n, err)
	}
}

// TestLateBring: a replica that was away hears from its peers that a change was given up,
// and only then what had been asked of it for that change. It brings no rows for it, and
// neither does one that was asked before, when another change begins: it would go on to
// ask for rows that nobody gives, and to remove them, and the other change would wait.
func TestLateBring(t *testing.T) {
	now := NewMap(ByHash, []channel.Endpoint{{TCP: "a:1"}}, []channel.Endpoint{{TCP: "b:1"}})
	next := *now
	next.Version, next.Bounds = 2, []Bound{{0, 1}}
	text, err := next.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	g := newGroup(newTestShard(t, Config{Map: now}), 0, 1, 1<<14, 9, testLease)
	g.joined(0)
	do := func(step changeStep, ticket uint64) {
		t.Helper()
		if _, err := g.step(&changeRequest{step: step, ticket: ticket, m: &next, text: text}, 0); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = 1 << 32, 2 << 32
	do(stepBegin, first)
	g.abort(first) // by a peer's log
	do(stepBring, first)
	if g.stage != nil {
		t.Error("rows are brought for a change that was given up")
	}
	do(stepBegin, second)
	do(stepBring, second)
	if g.stage == nil {
		t.Fatal("no rows are brought")
	}
	g.endChange() // as a copy of a peer does
	do(stepBegin, second+1)
	if g.stage != nil {
		t.Error("rows are brought for a change in whose place another has come")
	}
}
