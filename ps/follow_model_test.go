package ps

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testnet"
)

const (
	modelKeys     = 40
	modelShards   = 5 // that there are servers of
	modelReplicas = 2
	modelDim      = 2
)

// modelTable is a table for a client to follow the map of. All shards share the rows, so
// that none have to move; each gets a new map at a moment of its own. It knows
// which pushes must not come.
type modelTable struct {
	t   *testing.T
	net *testnet.Net

	mu      sync.Mutex
	rng     *rand.Rand
	maps    []*Map              // by version, from 1
	at      [modelShards]uint32 // version
	counts  [modelKeys]int
	applied map[modelPush]bool
	final   map[modelPush]bool // refused for good
	wrong   []string
	trouble float64 // of the pushes fail after they were applied, and as many take long
	servers [modelShards][modelReplicas]*archon.Server
	all     sync.WaitGroup
}

type modelPush struct {
	shard int
	id    requestID
}

func newModelTable(t *testing.T, seed uint64) *modelTable {
	m := &modelTable{t: t, net: testnet.New(seed), rng: rand.New(rand.NewPCG(seed, 3)), applied: map[modelPush]bool{}, final: map[modelPush]bool{}}
	for shard := range modelShards {
		for replica := range modelReplicas {
			m.serve(shard, replica)
		}
	}
	m.newMap()
	for i := range m.at {
		m.at[i] = 1
	}
	return m
}

func modelHost(shard, replica int) string { return fmt.Sprintf("s%dr%d", shard, replica) }

func (m *modelTable) serve(shard, replica int) {
	name := modelHost(shard, replica)
	s := archon.NewServer(archon.ServerConfig{Workers: 64})
	for _, err := range []error{
		s.Handle(MethodPush, func(call *archon.ServerCall) error { return m.push(call, shard) }),
		s.Handle(MethodFetch, func(call *archon.ServerCall) error { return m.fetch(call, shard) }),
		s.Handle(MethodMap, func(call *archon.ServerCall) error { return m.tell(call, shard) }),
	} {
		if err != nil {
			m.t.Fatal(err)
		}
	}
	l, err := archon.TCP{Network: m.net.Host(name)}.Listen(name + ":1")
	if err != nil {
		m.t.Fatal(err)
	}
	m.servers[shard][replica] = s
	m.all.Go(func() {
		s.Serve(context.Background(), l)
		l.Close()
	})
}

func (m *modelTable) close() {
	for _, list := range m.servers {
		for _, s := range list {
			s.Close()
		}
	}
	m.all.Wait()
}

// newMap draws the next map; no shard has it yet. The caller holds mu, or is alone.
func (m *modelTable) newMap() {
	next := &Map{Version: uint32(len(m.maps)) + 1, By: ByRange, Bounds: []Bound{{}}}
	for shard := range 1 + m.rng.IntN(modelShards) {
		var list []channel.Endpoint
		for replica := range modelReplicas {
			name := modelHost(shard, replica)
			list = append(list, channel.Endpoint{Name: name, TCP: name + ":1"})
		}
		if without := m.rng.IntN(2 * modelReplicas); without < modelReplicas {
			list = slices.Delete(list, without, without+1)
		}
		next.Replicas = append(next.Replicas, list)
	}
	next.Bounds[0].Shard = m.rng.IntN(len(next.Replicas))
	for at := range uint64(modelKeys) {
		if at > 0 && m.rng.IntN(8) == 0 {
			next.Bounds = append(next.Bounds, Bound{at, m.rng.IntN(len(next.Replicas))})
		}
	}
	m.maps = append(m.maps, next)
}

// change gives the shards a new map, one after the other.
func (m *modelTable) change() {
	m.mu.Lock()
	m.newMap()
	version, order := uint32(len(m.maps)), m.rng.Perm(modelShards)
	m.mu.Unlock()
	pause := m.draw(20 * time.Millisecond)
	for _, shard := range order {
		m.mu.Lock()
		m.at[shard] = version
		m.mu.Unlock()
		time.Sleep(pause)
	}
}

// draw gives a time below most.
func (m *modelTable) draw(most time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Duration(m.rng.Int64N(int64(most)))
}

// check reads a request and refuses that of another map. The caller holds mu.
func (m *modelTable) check(call *archon.ServerCall, shard int) (r request, err error) {
	b, push := call.Payload(), call.Method() == MethodPush
	version := binary.LittleEndian.Uint32(b[12:])
	by := m.maps[min(int(version), len(m.maps))-1]
	if shard >= len(by.Replicas) {
		return r, archon.Errorf(archon.InvalidArgument, "shard %d is not in map %d", shard, version)
	}
	cfg := Config{Dim: modelDim, Shard: shard, Shards: len(by.Replicas), Map: &Map{Version: version}, MaxKeys: 1000}
	if r, err = parseRequest(b, &cfg, push); err != nil {
		return r, err
	}
	for i := range r.count {
		if by.Owner(r.key(i)) != shard {
			return r, archon.Errorf(archon.InvalidArgument, "key %d is not of shard %d", r.key(i), shard)
		}
	}
	id := modelPush{shard, r.id}
	if m.applied[id] {
		return r, nil
	}
	if at := m.at[shard]; version != at {
		if version < at && push {
			m.final[id] = true
		}
		call.AddReplyMetadata(versionKey, strconv.FormatUint(uint64(at), 10))
		return r, archon.Errorf(archon.Aborted, "map version %d, there is %d", version, at)
	}
	if m.final[id] {
		m.wrong = append(m.wrong, fmt.Sprintf("push %v was refused and comes again", id))
	}
	return r, nil
}

// takes draws how long a request takes.
func (m *modelTable) takes() {
	m.mu.Lock()
	d := time.Duration(m.rng.ExpFloat64() * 1e6)
	m.mu.Unlock()
	time.Sleep(d)
}

func (m *modelTable) push(call *archon.ServerCall, shard int) error {
	m.takes()
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.check(call, shard)
	if err != nil {
		return err
	}
	if id := (modelPush{shard, r.id}); !m.applied[id] {
		m.applied[id] = true
		for i := range r.count {
			if g := viewFloats(r.gradients)[i*modelDim+1]; g != float32(r.key(i)) {
				m.wrong = append(m.wrong, fmt.Sprintf("key %d has the gradients of %v", r.key(i), g))
			}
			m.counts[r.key(i)]++
		}
	}
	switch x := m.rng.Float64(); {
	case x < m.trouble:
		return archon.Errorf(archon.Internal, "it was applied, and then this")
	case x < 2*m.trouble:
		m.mu.Unlock()
		time.Sleep(700 * time.Millisecond)
		m.mu.Lock()
	}
	return nil
}

func (m *modelTable) fetch(call *archon.ServerCall, shard int) error {
	m.takes()
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.check(call, shard)
	if err != nil {
		return err
	}
	out, err := call.Alloc(4 * modelDim * r.count)
	if err != nil {
		return err
	}
	for i := range r.count {
		putFloat(out[4*modelDim*i:], 0, float32(m.counts[r.key(i)]))
		putFloat(out[4*modelDim*i:], 1, float32(r.key(i)))
	}
	return nil
}

func (m *modelTable) tell(call *archon.ServerCall, shard int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := m.maps[m.at[shard]-1].MarshalText()
	if err != nil {
		return err
	}
	out, err := call.Alloc(len(text))
	copy(out, text)
	return err
}

// client makes a client of the first map.
func (m *modelTable) client(recovery channel.Recovery) *Client {
	c, err := NewMapClient(modelDim, m.maps[0], channel.Config{Service: "ps", TCP: archon.TCP{Network: m.net.Host("client")}, Recovery: recovery, Seed: m.rng.Uint64()})
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}
