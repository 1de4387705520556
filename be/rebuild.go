package be

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Engines that fail soon after they came up are rebuilt ever more slowly: a fault
// that comes back with each message must not make two nodes connect without end.
const (
	firstRebuild = 5 * time.Millisecond
	lastRebuild  = time.Second
	// soundAge is how long an engine must have lived for its failure to count as
	// the first.
	soundAge = 2 * time.Second
)

// rebuild is what a node remembers of the engines to one address and lane.
type rebuild struct {
	failures int // in a row, each soon after the engine came up
	until    time.Time
	rng      *rand.Rand
}

// newRebuild gives each address and lane a random source of its own.
func newRebuild(seed uint64, to way) *rebuild {
	h := fnv.New64a()
	h.Write([]byte(to.addr))
	return &rebuild{rng: rand.New(rand.NewPCG(seed+uint64(to.number)<<32+uint64(to.theirs), h.Sum64()))}
}

// failed counts the failure of an engine that lived for age, and says how long to
// wait before the next: doubling, capped, and half of it drawn by unit in [0, 1).
func (r *rebuild) failed(age time.Duration, unit float64) time.Duration {
	if age >= soundAge {
		r.failures = 0
	}
	r.failures++
	d := lastRebuild
	if shift := r.failures - 1; shift < 16 {
		d = min(firstRebuild<<shift, lastRebuild)
	}
	return d/2 + time.Duration(unit*float64(d/2))
}

// noteFailure remembers the failure of an engine that we dialed.
func (n *Node) noteFailure(c *conn) {
	if c.dialed == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	to := way{c.dialed, c.number, c.theirs}
	r := n.rebuilds[to]
	if r == nil {
		r = newRebuild(n.cfg.Seed, to)
		n.rebuilds[to] = r
	}
	now := time.Now()
	r.until = now.Add(r.failed(now.Sub(c.born), r.rng.Float64()))
}

// awaitRebuild waits until an engine to the address may be brought up again.
func (n *Node) awaitRebuild(ctx context.Context, to way) {
	n.mu.Lock()
	wait := time.Duration(0)
	if r := n.rebuilds[to]; r != nil {
		wait = time.Until(r.until)
	}
	n.mu.Unlock()
	if wait > 0 {
		waitFor(ctx.Done(), wait)
	}
}
