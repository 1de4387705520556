package ps

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// layout is where the shards are as of one version of the map. A call holds it, so that
// the ways in it stay open.
type layout struct {
	m        *Map // nil: keys are where ShardOf has them, and nothing changes
	ways     []*way
	uses     atomic.Int64  // calls, and one of the client until there is a newer one
	replaced chan struct{} // closed when there is
}

func (l *layout) version() uint32 {
	if l.m == nil {
		return 0
	}
	return l.m.Version
}

// owner gives the shard of a key.
func (l *layout) owner(key uint64) int {
	if l.m != nil {
		return l.m.Owner(key)
	}
	return ShardOf(key, len(l.ways))
}

// acquire gives the layout for a call, which releases it.
func (c *Client) acquire() *layout {
	for {
		l := c.layout.Load()
		if l.m == nil {
			return l
		}
		if n := l.uses.Load(); n > 0 && l.uses.CompareAndSwap(n, n+1) {
			return l
		}
	}
}

func (c *Client) release(l *layout) {
	if l.m != nil && l.uses.Add(-1) == 0 {
		c.follower.mu.Lock()
		c.follower.retire(l)
		c.follower.mu.Unlock()
	}
}

// follower keeps a client's layout up with the shards' map.
type follower struct {
	client *Client
	cfg    channel.Config // of the ways
	life   context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	ways    []*way           // the open ones, by shard; nil: there is none
	numbers []*atomic.Uint64 // of pushes, by shard; they never go back
	asking  chan struct{}    // closed when the shard that is asked for its map has answered
	turn    int              // of the shards to ask
	trouble error            // why the last one that was asked gave no map
}

var errClientClosed = &archon.Error{Code: archon.Unavailable, Message: "ps: the client is closed", Retryable: true}

// install makes a map that is newer the client's.
func (fo *follower) install(m *Map) error {
	if m == nil {
		return errors.New("ps: there is no map")
	}
	if err := m.Validate(); err != nil {
		return err
	}
	fo.mu.Lock()
	defer fo.mu.Unlock()
	old := fo.client.layout.Load()
	switch {
	case fo.closed:
		return errClientClosed
	case old != nil && m.Version <= old.m.Version:
		return nil
	}
	l := &layout{m: m, replaced: make(chan struct{})}
	l.uses.Store(1)
	for i, list := range m.Replicas {
		w, err := fo.way(i, list)
		if err != nil {
			fo.retire(l)
			return errors.WithMessagef(err, "ps: shard %d", i)
		}
		w.layouts++
		l.ways = append(l.ways, w)
	}
	for i, w := range l.ways {
		w.replicas.set(m.Replicas[i])
	}
	fo.client.layout.Store(l)
	if old != nil {
		close(old.replaced)
		if old.uses.Add(-1) == 0 {
			fo.retire(old)
		}
	}
	return nil
}

// way gives the way to a shard, opened if there is none. The caller holds mu.
func (fo *follower) way(shard int, list []channel.Endpoint) (*way, error) {
	for len(fo.ways) <= shard {
		fo.ways, fo.numbers = append(fo.ways, nil), append(fo.numbers, new(atomic.Uint64))
	}
	if w := fo.ways[shard]; w != nil {
		return w, nil
	}
	w := &way{number: fo.numbers[shard], replicas: &replicas{list: list}}
	cfg := fo.cfg
	cfg.Resolver = w.replicas
	var err error
	if w.ch, err = channel.New(cfg); err != nil {
		return nil, err
	}
	fo.ways[shard] = w
	return w, nil
}

// retire closes the ways that were in no other layout. The caller holds mu.
func (fo *follower) retire(l *layout) {
	for i, w := range l.ways {
		if w.layouts--; w.layouts == 0 && !fo.closed {
			fo.ways[i] = nil
			fo.wg.Go(func() { _ = w.close() })
		}
	}
}

// spawn runs work that ends with the client; false: that is closed.
func (fo *follower) spawn(work func()) bool {
	fo.mu.Lock()
	defer fo.mu.Unlock()
	if !fo.closed {
		fo.wg.Go(work)
	}
	return !fo.closed
}

const (
	askLimit = time.Second // of how long a shard is asked for its map
	// askMost is how many shards are asked at a time, by turns, while another one cannot be
	// reached: that may last, and maps may be long.
	askMost = 4
)

// ask has the shard behind a way asked for its map, or, of nil, some of those that can be
// reached until one has a newer one, unless that is being done already. What it gives is
// closed when it is over.
func (fo *follower) ask(from *way) <-chan struct{} {
	fo.mu.Lock()
	defer fo.mu.Unlock()
	if fo.asking == nil && !fo.closed {
		over := make(chan struct{})
		fo.asking = over
		ways := []*way{from}
		if from == nil {
			ways = fo.others()
		}
		fo.wg.Go(func() {
			defer func() {
				fo.mu.Lock()
				fo.asking = nil
				fo.mu.Unlock()
				close(over)
			}()
			for _, w := range ways {
				if fo.fetch(w) {
					return
				}
			}
		})
	}
	return fo.asking
}

// others are the ways whose turn it is to be asked. The caller holds mu.
func (fo *follower) others() (some []*way) {
	all := fo.client.layout.Load().ways
	for range all {
		w := all[fo.turn%len(all)]
		if fo.turn++; w.ch.Client(0) != nil {
			if some = append(some, w); len(some) == askMost {
				break
			}
		}
	}
	return some
}

// watchInterval is how often the ways are looked at.
const watchInterval = 250 * time.Millisecond

// watch asks for a newer map while a shard has no replica where the map says.
func (fo *follower) watch() {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-fo.life.Done():
			return
		case <-tick.C:
		}
		if slices.ContainsFunc(fo.client.layout.Load().ways, func(w *way) bool { return w.ch.Client(0) == nil }) {
			fo.ask(nil)
		}
	}
}

// fetch gets the map of the shard behind a way, and tells whether it is newer.
func (fo *follower) fetch(w *way) bool {
	had := fo.client.layout.Load()
	ctx, cancel := context.WithTimeout(fo.life, askLimit)
	defer cancel()
	m, err := FetchMap(channel.WithOptions(ctx, channel.Options{Idempotent: true}), w.ch)
	if err == nil {
		err = fo.install(m)
	}
	fo.mu.Lock()
	fo.trouble = err
	fo.mu.Unlock()
	return err == nil && fo.client.layout.Load() != had
}

// whyNot tells why the last shard that was asked for its map gave none.
func (fo *follower) whyNot() error {
	fo.mu.Lock()
	defer fo.mu.Unlock()
	return fo.trouble
}

func (fo *follower) close() error {
	fo.mu.Lock()
	fo.closed = true
	ways := fo.ways
	fo.mu.Unlock()
	fo.end()
	var all sync.WaitGroup
	for _, w := range ways {
		if w != nil {
			all.Go(func() { _ = w.close() })
		}
	}
	all.Wait()
	fo.wg.Wait()
	return nil
}
