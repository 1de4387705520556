package channel

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel/core"
)

// Channel is the way to one service. Its methods may be called from any goroutine.
type Channel struct {
	cfg        Config
	idempotent map[archon.Method]bool
	start      time.Time
	set        *core.Set
	budget     *core.Budget
	shards     []*shard
	turn       atomic.Uint32
	calls      sync.Pool // *Call of Do
	closed     atomic.Bool

	life context.Context // ends with Close
	end  context.CancelFunc
	wg   sync.WaitGroup // the resolver, replicas, set-ups, ends of connections

	mu       sync.Mutex
	replicas map[string]*replica
	lastID   uint32
	news     chan struct{} // closed when a replica becomes ready
	resolved error         // of the resolver, last
}

// maxShards bounds the locks that calls spread over: with one for each processor they
// seldom meet.
const maxShards = 16

// New makes a channel and begins to connect to the replicas. Calls wait until there is
// one.
func New(cfg Config) (*Channel, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ch := &Channel{cfg: cfg, idempotent: map[archon.Method]bool{}, start: time.Now(), replicas: map[string]*replica{}, news: make(chan struct{})}
	for _, m := range cfg.Idempotent {
		ch.idempotent[m] = true
	}
	ch.set, ch.budget = core.NewSet(&ch.cfg.Recovery), core.NewBudget(&ch.cfg.Recovery)
	ch.calls.New = func() any { return &Call{wake: make(chan struct{}, 1)} }
	for range min(runtime.GOMAXPROCS(0), maxShards) {
		ch.shards = append(ch.shards, newShard(ch, ch.newRand(uint64(len(ch.shards)))))
	}
	ch.life, ch.end = context.WithCancel(context.Background())
	ch.wg.Go(func() { cfg.Resolver.Watch(ch.life, ch.update) })
	return ch, nil
}

// newRand gives a random source of its own to what has this number.
func (ch *Channel) newRand(number uint64) *rand.Rand {
	if seed := ch.cfg.Seed; seed != 0 {
		return rand.New(rand.NewPCG(seed, number))
	}
	return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
}

// now is the time since the channel's start, never 0.
func (ch *Channel) now() time.Duration { return time.Since(ch.start) + 1 }

// Close ends all calls with Unavailable, closes the connections and waits for their
// ends. It must not be called from a done function.
func (ch *Channel) Close() error {
	ch.closed.Store(true)
	for _, s := range ch.shards {
		s.abort(errClosed)
	}
	ch.end()
	ch.wg.Wait()
	return nil
}

// update takes a resolver's answer.
func (ch *Channel) update(list []Endpoint, err error) {
	if err == nil {
		err = CheckEndpoints(list)
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.resolved = err
	if err != nil || ch.life.Err() != nil {
		return
	}
	there := map[string]bool{}
	for i := range list {
		e := list[i]
		name := e.name()
		there[name] = true
		r := ch.replicas[name]
		if r != nil && r.moved(&e) {
			ch.remove(r)
			r = nil
		}
		if r == nil {
			ch.add(name, e)
			continue
		}
		r.setDraining(e.Draining)
	}
	for name, r := range ch.replicas {
		if !there[name] {
			ch.remove(r)
		}
	}
}

// add begins to connect to a replica; the caller holds mu.
func (ch *Channel) add(name string, e Endpoint) {
	h := fnv.New64a()
	h.Write([]byte(name))
	ch.lastID++
	r := &replica{ch: ch, name: name, ep: e, events: make(chan dialed)}
	r.core.ID, r.core.Tier, r.core.Key, r.core.User = ch.lastID, ch.cfg.Locality(e), h.Sum64(), r
	r.setDraining(e.Draining)
	r.core.SetStarting(ch.cfg.paths(&e) != 0)
	var life context.Context
	life, r.stop = context.WithCancel(ch.life)
	ch.replicas[name] = r
	ch.set.Add(&r.core)
	ch.wg.Go(func() { r.run(life) })
}

// remove takes a replica out: calls under way end. The caller holds mu.
func (ch *Channel) remove(r *replica) {
	delete(ch.replicas, r.name)
	ch.set.Remove(&r.core)
	r.stop()
}

// ready tells all who wait that a replica is ready.
func (ch *Channel) ready() {
	ch.mu.Lock()
	close(ch.news)
	ch.news = make(chan struct{})
	ch.mu.Unlock()
	for _, s := range ch.shards {
		s.ready()
	}
}

// Wait waits until a replica can be reached. Its error is that of ctx as an
// *archon.Error, with what stands in the way as the cause.
func (ch *Channel) Wait(ctx context.Context) error {
	for {
		ch.mu.Lock()
		news := ch.news
		ch.mu.Unlock()
		for _, r := range ch.set.Replicas() {
			if r.Ready() {
				return nil
			}
		}
		select {
		case <-news:
		case <-ch.life.Done():
			return errClosed
		case <-ctx.Done():
			return &archon.Error{Code: archon.CodeOf(ctx.Err()), Message: core.NoReplica.String(), Cause: ch.trouble()}
		}
	}
}

// maxTroubles is how many replicas' troubles an error names.
const maxTroubles = 3

// trouble is why no replica can be reached, as far as known.
func (ch *Channel) trouble() error {
	ch.mu.Lock()
	list := []error{ch.resolved}
	ch.mu.Unlock()
	for _, r := range ch.set.Replicas() {
		if err := r.User.(*replica).trouble.Load(); err != nil && len(list) <= maxTroubles {
			list = append(list, *err)
		}
	}
	return errors.Join(list...)
}

// Client gives the connection that a call would take, for what is no call, or nil: there
// is none. It may end, or serve no new calls, at any time, and stays the channel's.
func (ch *Channel) Client(affinity uint64) *archon.Client {
	if c := ch.pick(affinity); c != nil {
		return c.client
	}
	return nil
}

// pick gives a connection for what is sent without being watched; nil: there is none.
func (ch *Channel) pick(affinity uint64) *conn {
	s := ch.shards[ch.turn.Add(1)%uint32(len(ch.shards))]
	s.mu.Lock()
	r, probe := ch.set.Pick(ch.now(), s.shared.Rng, &core.Wish{Affinity: affinity})
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	if probe {
		r.ProbeOver()
	}
	return r.User.(*replica).use.Load()
}
