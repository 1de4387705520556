package ps_test

import (
	"context"
	"math"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testnet"
	"github.com/byteexpress/byteexpress/ps"
)

// virtualMoves are changes of the shard map while the shards serve, alone and while
// something happens to a replica, or to who makes the change.
var virtualMoves = []virtualFault{
	{desc: "a shard map changes", mapped: true, lasts: time.Second, strike: func(w *virtualWorld, _ *virtualNode) {
		for range 3 {
			w.changeMap()
			w.changed()
		}
	}, heal: func(*virtualWorld, *virtualNode) {}},
	{desc: "a shard map changes, a replica is killed and restarted", mapped: true, lasts: 3 * time.Second, falls: gone, strike: func(w *virtualWorld, n *virtualNode) {
		w.changeMap()
		w.someTime(300 * time.Millisecond)
		n.kill()
	}, heal: func(w *virtualWorld, n *virtualNode) { n.boot(); w.changed() }},
	{desc: "a shard map changes, a replica hangs", mapped: true, lasts: 4 * time.Second, falls: gone, strike: func(w *virtualWorld, n *virtualNode) {
		w.changeMap()
		w.someTime(300 * time.Millisecond)
		n.freeze(true)
	}, heal: func(w *virtualWorld, n *virtualNode) { n.freeze(false); w.changed() }},
	{desc: "a shard map changes, and who does it dies", mapped: true, lasts: 2 * time.Second, strike: func(w *virtualWorld, _ *virtualNode) {
		host := w.net.Host("coordinator1")
		from, to := w.shardMap, w.mapOf(w.shardMap.Version+1)
		w.shardMap = to
		first := w.rebalance(host, from, to)
		w.someTime(300 * time.Millisecond)
		host.Freeze(true) // nothing that it still says gets out
		w.moving = w.rebalance(w.net.Host("coordinator2"), from, to)
		w.changed()
		host.Freeze(false)
		w.moving = first
	}, heal: func(w *virtualWorld, _ *virtualNode) { w.changed() }},
}

// mapOf draws a map by which keys are in ranges of hashes.
func (w *virtualWorld) mapOf(version uint32) *ps.Map {
	m := &ps.Map{Version: version, By: ps.ByHash}
	const ranges = 6
	for i := range uint64(ranges) {
		m.Bounds = append(m.Bounds, ps.Bound{First: i * (math.MaxUint64 / ranges), Shard: w.rng.IntN(virtualShards)})
	}
	for range virtualShards {
		m.Replicas = append(m.Replicas, nil)
	}
	for _, n := range w.nodes {
		m.Replicas[n.shard] = append(m.Replicas[n.shard], channel.Endpoint{Name: n.name, TCP: n.tcp, RDMA: n.be})
	}
	return m
}

func (w *virtualWorld) owner(key uint64) int {
	if w.shardMap == nil {
		return ps.ShardOf(key, virtualShards)
	}
	return w.shardMap.Owner(key)
}

// changeMap begins a change to another map.
func (w *virtualWorld) changeMap() {
	from := w.shardMap
	w.shardMap = w.mapOf(from.Version + 1)
	w.moving = w.rebalance(w.net.Host("coordinator"), from, w.shardMap)
}

func (w *virtualWorld) rebalance(host testnet.Host, from, to *ps.Map) chan error {
	over := make(chan error, 1)
	w.ends.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		over <- ps.Rebalance(ctx, from, to, ps.RebalanceConfig{Transport: archon.TCP{Network: host}})
	})
	return over
}

// changed waits until the change is made.
func (w *virtualWorld) changed() {
	if err := <-w.moving; err != nil {
		w.mu.Lock()
		w.say("%v", err)
		w.mu.Unlock()
	}
}

func (w *virtualWorld) someTime(most time.Duration) {
	time.Sleep(time.Duration(w.rng.Int64N(int64(most))))
}
