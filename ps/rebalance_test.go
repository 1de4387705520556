package ps_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testprocess"
	"github.com/byteexpress/byteexpress/ps"
	"github.com/byteexpress/byteexpress/sim"
)

const (
	movingKeys = 400
	movingDim  = 160 // long enough for rows to be lent
)

// countedMemory is Go's, counted.
type countedMemory struct{ bytes atomic.Int64 }

func (m *countedMemory) Alloc(n int) ([]byte, error) {
	m.bytes.Add(int64(n))
	return make([]byte, n), nil
}

func (m *countedMemory) Free(b []byte) { m.bytes.Add(-int64(len(b))) }

// movingTable is a table whose shards have two replicas each, reached over TCP, and over
// RDMA too if there is a fabric.
type movingTable struct {
	first     *ps.Map // nobody has keys by it but the first shards
	shards    [][]*ps.Shard
	memory    [][]*countedMemory
	endpoints [][]channel.Endpoint
	peers     [][]string
	stops     [][]func()
}

// equalMap has keys in equal ranges on shards, and all replicas.
func equalMap(version uint32, replicas [][]channel.Endpoint, shards ...int) *ps.Map {
	m := &ps.Map{Version: version, By: ps.ByRange, Replicas: replicas}
	for i, s := range shards {
		m.Bounds = append(m.Bounds, ps.Bound{First: uint64(i * movingKeys / len(shards)), Shard: s})
	}
	return m
}

func newMovingTable(t *testing.T, shards int, fabric *sim.Fabric, owners ...int) *movingTable {
	m := &movingTable{}
	var replicas [][]channel.Endpoint
	for range shards {
		replicas = append(replicas, []channel.Endpoint{{TCP: testprocess.Addr(t)}, {TCP: testprocess.Addr(t)}})
	}
	if fabric != nil {
		for i := range replicas {
			for j := range replicas[i] {
				replicas[i][j].RDMA = testprocess.Addr(t)
			}
		}
	}
	m.first, m.endpoints = equalMap(1, replicas, owners...), replicas
	begins := *m.first
	begins.Replicas = replicas[:slices.Max(owners)+1]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, list := range replicas {
		peers := []string{testprocess.Addr(t), testprocess.Addr(t)}
		m.peers = append(m.peers, peers)
		var of []*ps.Shard
		var mem []*countedMemory
		var stops []func()
		var all []*ps.Replica
		for j, at := range list {
			memory := &countedMemory{}
			s, r, _, stop := replicaOf(t, tcp, ps.Config{Dim: movingDim, Shard: i, Map: &begins, LearningRate: 0.1, Optimizer: ps.Adagrad, Memory: memory}, peers, j, at.TCP)
			if fabric != nil {
				_, host := rdmaHost(t, fabric, "sim:"+at.TCP, nil)
				serveRDMA(t, s, r, host, at.RDMA)
			}
			of, mem, stops, all = append(of, s), append(mem, memory), append(stops, stop), append(all, r)
		}
		for _, r := range all {
			if err := r.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		m.shards, m.memory, m.stops = append(m.shards, of), append(m.memory, mem), append(m.stops, stops)
	}
	m.first = &begins
	return m
}

// movingLoad pushes and fetches all the time.
type movingLoad struct {
	c      *ps.Client
	stop   atomic.Bool
	wg     sync.WaitGroup
	pushes [movingKeys]atomic.Uint64
	calls  atomic.Int64
}

func (l *movingLoad) start(t *testing.T, seed, workers uint64) {
	for worker := range workers {
		l.wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, worker))
			for !l.stop.Load() {
				l.calls.Add(1)
				keys := make([]uint64, 1+rng.IntN(20))
				for i := range keys {
					keys[i] = rng.Uint64N(movingKeys)
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				if rng.IntN(2) == 0 {
					f, err := l.c.Fetch(ctx, keys)
					if err != nil {
						t.Error(err)
					} else {
						f.Release()
					}
				} else {
					gradients := make([]float32, len(keys)*movingDim)
					for i := range gradients {
						gradients[i] = rng.Float32()
					}
					if err := l.c.Push(ctx, keys, gradients); err != nil {
						t.Error(err)
					}
					for _, key := range keys {
						l.pushes[key].Add(1)
					}
				}
				cancel()
			}
		})
	}
}

// check holds each row to be where the map says, with all pushes, and nowhere else.
func (m *movingTable) check(t *testing.T, by *ps.Map, l *movingLoad) {
	t.Helper()
	for shard, of := range m.shards {
		for j, s := range of {
			if shard < len(by.Replicas) && s.Map().Version != by.Version {
				t.Errorf("replica %d of shard %d has map version %d, must have %d", j, shard, s.Map().Version, by.Version)
			}
			rows := 0
			for key := range uint64(movingKeys) {
				want := l.pushes[key].Load()
				if by.Owner(key) == shard && want > 0 {
					rows++
				} else {
					want = 0
				}
				if got := s.Version(key); got != want {
					t.Errorf("replica %d of shard %d has %d pushes of key %d, must have %d", j, shard, got, key, want)
				}
			}
			if s.Rows() != rows {
				t.Errorf("replica %d of shard %d has %d rows, %d are its own", j, shard, s.Rows(), rows)
			}
			if rows == 0 && m.memory[shard][j].bytes.Load() != 0 {
				t.Errorf("replica %d of shard %d has no rows and %d bytes for them", j, shard, m.memory[shard][j].bytes.Load())
			}
		}
	}
}

// swept tells whether all shards have removed what is not theirs.
func (m *movingTable) swept(by *ps.Map, l *movingLoad) func() bool {
	return func() bool {
		for shard, of := range m.shards {
			want := 0
			for key := range uint64(movingKeys) {
				if by.Owner(key) == shard && l.pushes[key].Load() > 0 {
					want++
				}
			}
			for j, s := range of {
				if s.Rows() != want || want == 0 && m.memory[shard][j].bytes.Load() != 0 {
					return false
				}
			}
		}
		return true
	}
}

// TestRebalance: rows of three shards move, to a fourth one that begins, back, and away
// from one that ends, while clients push and fetch. No call fails; every push is there
// once, with what Adagrad keeps, where the map says and nowhere else; and memory of a
// shard without rows is given back. Over TCP, and over RDMA.
func TestRebalance(t *testing.T) {
	t.Run("tcp", func(t *testing.T) { testRebalance(t, nil) })
	t.Run("sim", func(t *testing.T) { testRebalance(t, sim.NewFabric(sim.Config{})) })
}

func testRebalance(t *testing.T, fabric *sim.Fabric) {
	m := newMovingTable(t, 4, fabric, 0, 1, 2)
	cfg := channel.Config{Service: "ps", Recovery: patientClient}
	if fabric != nil {
		_, cfg.RDMA = rdmaHost(t, fabric, "sim:client", nil)
	}
	c, err := ps.NewMapClient(movingDim, m.first, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rng := seededRand(t)
	l := &movingLoad{c: c}
	l.start(t, rng.Uint64(), 4)
	defer l.wg.Wait()
	defer l.stop.Store(true)
	replicas := m.endpoints
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	from := m.first
	for i, owners := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 2, 3}, {2, 3}} {
		to := equalMap(uint32(2+i), replicas, owners...)
		before := l.calls.Load()
		began := time.Now()
		if err := ps.Rebalance(ctx, from, to, patient); err != nil {
			t.Fatal(err)
		}
		t.Logf("map %d: %v, %d calls meanwhile", to.Version, time.Since(began), l.calls.Load()-before)
		if err := ps.Rebalance(ctx, from, to, patient); err != nil {
			t.Errorf("again: %v", err)
		}
		from = to
	}
	l.stop.Store(true)
	l.wg.Wait()
	eventually(t, "rows that left are removed", m.swept(from, l))
	m.check(t, from, l)

	all := keyRange(movingKeys)
	was, err := c.Fetch(ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	defer was.Release()
	if err := ps.Rebalance(ctx, from, equalMap(10, replicas, 0, 3, 1), ps.RebalanceConfig{}); err != nil {
		t.Fatal(err)
	}
	is, err := c.Fetch(ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	defer is.Release()
	for i := range all {
		for j, v := range is.Row(i) { // replicas agree but for the last bits, see the package comment
			if d := float64(v - was.Row(i)[j]); math.Abs(d) > 1e-2 {
				t.Errorf("value %d of row %d is %v, was %v", j, i, v, was.Row(i)[j])
				break
			}
		}
	}
}

// TestRebalanceNeedsAll: without a replica of a shard that loses keys nothing changes, and
// the error names it; when it is back, the change is made.
func TestRebalanceNeedsAll(t *testing.T) {
	m := newMovingTable(t, 2, nil, 0)
	to := equalMap(2, m.endpoints, 0, 1)
	m.stops[0][1]()
	for wait := time.Second; ; wait *= 2 { // a slow machine may not have asked the others by then
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		err := ps.Rebalance(ctx, m.first, to, ps.RebalanceConfig{Timeout: wait / 10, Freeze: wait})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || wait > time.Minute {
			t.Fatal(err)
		}
		if strings.Contains(err.Error(), m.endpoints[0][1].TCP) {
			break
		}
	}
	for _, of := range m.shards {
		for _, s := range of {
			if v := s.Map().Version; v != 1 {
				t.Errorf("map version %d", v)
			}
		}
	}
	s, _, _, _ := replicaOf(t, tcp, ps.Config{Dim: movingDim, Map: m.first, LearningRate: 0.1, Optimizer: ps.Adagrad}, m.peers[0], 1, m.endpoints[0][1].TCP)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ps.Rebalance(ctx, m.first, to, ps.RebalanceConfig{}); err != nil {
		t.Error(err)
	}
	eventually(t, "the replica that returned has the new map", func() bool { return s.Map().Version == 2 })
}

// patient is for tests that leave the processors no time: an answer may take seconds.
var patient = ps.RebalanceConfig{Timeout: 5 * time.Second, Freeze: 10 * time.Second}

// patientClient is for the same: replicas that get no time have no news of one another, and
// send clients away again and again.
var patientClient = channel.Recovery{PingTimeout: time.Minute, MaxAttempts: 100, RetryBurst: 1_000_000}

// TestRebalanceBusy: more pushes wait for a change than a server has workers.
func TestRebalanceBusy(t *testing.T) {
	m := newMovingTable(t, 2, nil, 0)
	c, err := ps.NewMapClient(movingDim, m.first, channel.Config{Service: "ps", Recovery: patientClient})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := &movingLoad{c: c}
	l.start(t, 1, 100)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	from := m.first
	for i, owner := range []int{1, 0, 1} {
		to := equalMap(uint32(2+i), m.endpoints, owner)
		if err := ps.Rebalance(ctx, from, to, patient); err != nil {
			t.Error(err)
			break
		}
		from = to
	}
	l.stop.Store(true)
	l.wg.Wait()
	eventually(t, "rows that left are removed", m.swept(from, l))
	m.check(t, from, l)
}

// TestRebalanceRefuses what cannot be, and needs no more than all replicas.
func TestRebalanceRefuses(t *testing.T) {
	m := newMovingTable(t, 2, nil, 0, 1)
	by := *equalMap(2, m.endpoints, 1, 0)
	hash, same, none := by, by, by
	hash.By = ps.ByHash
	same.Version = 1
	none.Replicas = [][]channel.Endpoint{m.endpoints[0], nil}
	for desc, to := range map[string]*ps.Map{"load the rows anew": &hash, "it must be higher": &same, "no replicas": &none, "there is no map": nil} {
		if err := ps.Rebalance(t.Context(), m.first, to, ps.RebalanceConfig{}); err == nil || !strings.Contains(err.Error(), desc) {
			t.Errorf("want an error that says %q: %v", desc, err)
		}
	}
	other := *equalMap(3, m.endpoints, 1, 0)
	for _, to := range []*ps.Map{&by, &other} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		from := m.first
		if to == &other {
			from = &by
		}
		if err := ps.Rebalance(ctx, from, to, ps.RebalanceConfig{}); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	more := *equalMap(4, [][]channel.Endpoint{append(slices.Clone(m.endpoints[0]), channel.Endpoint{TCP: testprocess.Addr(t)}), m.endpoints[1]}, 0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ps.Rebalance(ctx, &other, &more, ps.RebalanceConfig{}); err != nil {
		t.Errorf("with an address at which nobody is, beside all replicas: %v", err)
	}
	another := more
	another.Bounds = []ps.Bound{{Shard: 0}}
	for desc, to := range map[string]*ps.Map{"another map of the version in force": &another, "an older one": &by} {
		if err := ps.Rebalance(t.Context(), m.first, to, ps.RebalanceConfig{}); err == nil {
			t.Errorf("%s: it is done", desc)
		}
	}
}
