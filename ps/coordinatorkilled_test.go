package ps

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testprocess"
)

const killedKeys = 40

// served is the shards of a table over TCP in this process.
type served struct {
	t      *testing.T
	m      *Map
	shards []*Shard
	pushed [killedKeys]atomic.Int64
	issued [killedKeys]atomic.Int64
	calls  []atomic.Int64 // by client
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// serveShards serves two shards of some replicas, which halve the keys.
func serveShards(t *testing.T, replicas int) *served {
	v := &served{t: t, m: &Map{Version: 1, By: ByRange, Bounds: []Bound{{0, 0}, {killedKeys / 2, 1}}}}
	for range 2 {
		var list []channel.Endpoint
		for range replicas {
			list = append(list, channel.Endpoint{TCP: testprocess.Addr(t)})
		}
		v.m.Replicas = append(v.m.Replicas, list)
	}
	v.serve(nil)
	return v
}

// serve serves the shards, which are restored from files first if there are some.
func (v *served) serve(files []string) {
	t, all := v.t, []*Replica(nil)
	for shard, list := range v.m.Replicas {
		var peers []string
		for range list {
			peers = append(peers, testprocess.Addr(t))
		}
		for i, e := range list {
			s, err := NewShard(Config{Dim: 1, Shard: shard, Map: v.m, LearningRate: 1})
			if err != nil {
				t.Fatal(err)
			}
			if files != nil {
				if err := s.RestoreFile(files[shard]); err != nil {
					t.Fatal(err)
				}
			}
			lease := 200 * time.Millisecond
			if slowed {
				lease = time.Second
			}
			inside, outside := archon.NewServer(archon.ServerConfig{}), archon.NewServer(archon.ServerConfig{Workers: 16})
			r, err := s.Replicate(inside, ReplicaConfig{Peers: peers, Self: i, Lease: lease, LogBytes: 1 << 18})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Register(outside); err != nil {
				t.Fatal(err)
			}
			for addr, srv := range map[string]*archon.Server{peers[i]: inside, e.TCP: outside} {
				t.Cleanup(serve(t, archon.TCP{}, addr, srv))
			}
			t.Cleanup(func() {
				r.Close()
				s.Close()
			})
			v.shards, all = append(v.shards, s), append(all, r)
		}
	}
	for _, r := range all {
		if err := r.Wait(limit(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// limit bounds what must not last for ever.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// load has clients push 1 to some keys at a time, until the end.
func (v *served) load(clients int) {
	ctx, stop := context.WithCancel(context.Background())
	v.stop, v.calls = stop, make([]atomic.Int64, clients)
	for i := range clients {
		c, err := NewMapClient(1, v.m, channel.Config{Service: "ps"})
		if err != nil {
			v.t.Fatal(err)
		}
		v.wg.Go(func() {
			defer c.Close()
			for k := i; ctx.Err() == nil; k++ {
				keys := []uint64{uint64(k % killedKeys), uint64((3*k + 1) % killedKeys)}
				if keys[0] == keys[1] {
					keys = keys[:1]
				}
				gradients := make([]float32, len(keys))
				for j, key := range keys {
					gradients[j] = -1
					v.issued[key].Add(1)
				}
				push, end := context.WithTimeout(context.Background(), time.Minute)
				err := c.Push(push, keys, gradients)
				if end(); err != nil {
					v.t.Errorf("client %d: %v", i, err)
					return
				}
				for _, key := range keys {
					v.pushed[key].Add(1)
				}
				v.calls[i].Add(1)
			}
		})
	}
}

// more waits until each client has pushed so often again.
func (v *served) more(what string, n int64) {
	v.t.Helper()
	ctx := limit(v.t)
	for i := range v.calls {
		for from := v.calls[i].Load(); v.calls[i].Load() < from+n && !v.t.Failed(); time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				v.t.Fatalf("%s: client %d waits for ever", what, i)
			}
		}
	}
}

// next is a map with other owners of some keys.
func (v *served) next() *Map {
	m := *v.m
	m.Version++
	m.Bounds = []Bound{{0, 0}, {killedKeys / 4, 1}}
	if v.m.Bounds[1].First == killedKeys/4 {
		m.Bounds = []Bound{{0, 0}, {killedKeys / 2, 1}}
	}
	return &m
}

// check compares every row with what was pushed.
func (v *served) check() {
	v.t.Helper()
	c, err := NewMapClient(1, v.m, channel.Config{Service: "ps"})
	if err != nil {
		v.t.Fatal(err)
	}
	defer c.Close()
	var keys []uint64
	for key := range uint64(killedKeys) {
		keys = append(keys, key)
	}
	rows, err := c.Fetch(limit(v.t), keys)
	if err != nil {
		v.t.Fatal(err)
	}
	defer rows.Release()
	for i := range keys {
		if sum := rows.Row(i)[0]; int64(sum) != v.pushed[i].Load() || v.pushed[i].Load() != v.issued[i].Load() {
			v.t.Errorf("key %d has %v pushes of %d", i, sum, v.pushed[i].Load())
		}
	}
}

// TestCoordinatorKilled: a coordinator is killed after each step of a change, under load,
// with one and with two replicas a shard. Until it has prepared, pushes go on without
// another one; then another one completes the change. Nobody waits for ever, and every
// push counts once.
func TestCoordinatorKilled(t *testing.T) {
	for replicas := 1; replicas <= 2; replicas++ {
		t.Run(fmt.Sprint(replicas, "replicas"), func(t *testing.T) {
			v := serveShards(t, replicas)
			v.load(3)
			for last := phaseLook; last < phaseAbort && !t.Failed(); last++ {
				desc := fmt.Sprintf("killed after phase %d", last)
				next := v.next()
				v.more(desc+", before", 20)
				c, err := newCoordinator(v.m, next, uint32(last)+1, 400*time.Millisecond)
				if err != nil {
					t.Fatal(err)
				}
				d := &rebalancer{c: c, cfg: RebalanceConfig{Transport: archon.TCP{}, Timeout: 250 * time.Millisecond}, lines: make([]line, len(c.members))}
				for ctx := limit(t); ; {
					d.round(ctx)
					if c.phase == last {
						break
					}
					pause, err := c.judge()
					if err != nil || ctx.Err() != nil {
						t.Fatalf("%s: %v, %v", desc, err, ctx.Err())
					}
					time.Sleep(pause)
				}
				d.close()
				if last < phasePrepare {
					v.more(desc, 20)
				}
				if err := Rebalance(limit(t), v.m, next, RebalanceConfig{}); err != nil {
					t.Fatalf("%s: %v", desc, err)
				}
				v.more(desc+", after another one", 20)
				v.m = next
			}
			v.stop()
			v.wg.Wait()
			v.check()
		})
	}
}

// TestRebalanceAfterAnother: a replica that has not heard yet that the change before is over
// holds the next one up until then; if no replica of its shard has, that is an error.
func TestRebalanceAfterAnother(t *testing.T) {
	v := serveShards(t, 2)
	shut := func(replica int, before *Map) {
		s := v.shards[replica]
		s.mu.Lock()
		defer s.mu.Unlock()
		s.own.before = before
	}
	shut(0, v.m)
	over := make(chan error, 1)
	next := v.next()
	go func() { over <- Rebalance(limit(t), v.m, next, RebalanceConfig{}) }()
	select {
	case err := <-over:
		t.Fatalf("it is not waited for: %v", err)
	case <-time.After(2 * time.Second):
	}
	shut(0, nil)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	v.m = next
	shut(0, v.m)
	shut(1, v.m)
	if err := Rebalance(limit(t), v.m, v.next(), RebalanceConfig{}); err == nil || !strings.Contains(err.Error(), "run that again first") {
		t.Errorf("a change that is not complete: %v", err)
	}
}
