package ps_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/internal/testfault"
	"github.com/byteexpress/byteexpress/internal/testnet"
	"github.com/byteexpress/byteexpress/ps"
	"github.com/byteexpress/byteexpress/sim"
)

const (
	virtualShards, virtualReplicas = 3, 2
	virtualDim                     = 4
	virtualLease                   = 400 * time.Millisecond
	virtualDeadline                = 3 * time.Second // of a request
)

// virtualWorld is 3 shards of 2 replicas on hosts of their own, and a client on another,
// in virtual time: everything from the table to the TCP socket's and the engines'
// goroutines is what production runs, in a bubble of testing/synctest, over a network and
// NICs in memory.
type virtualWorld struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	net      *testnet.Net
	fabric   *sim.Fabric
	around   archon.Interceptor // of the servers; nil: none
	device   *sim.Device        // the client's, as the next two
	fault    *testfault.Device
	rdma     *channel.Device
	nodes    []*virtualNode
	channels []*channel.Channel
	maps     [virtualShards]virtualMap
	shardMap *ps.Map // the latest; nil: shards are as ShardOf has them
	first    *ps.Map // that replicas begin with
	moving   chan error
	recovery core.Config
	ends     sync.WaitGroup
	*virtualLoad
	ways *wayWatch
}

func newVirtualWorld(t *testing.T, seed uint64, around archon.Interceptor, mapped bool) *virtualWorld {
	w := &virtualWorld{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), net: testnet.New(seed), fabric: sim.NewFabric(sim.Config{Seed: seed | 1}), around: around}
	w.device, w.fault, w.rdma = w.newDevice("client", w.net.Host("client"))
	for shard := range virtualShards {
		var peers []string
		for replica := range virtualReplicas {
			peers = append(peers, fmt.Sprintf("s%dr%d:1", shard, replica))
		}
		for replica := range virtualReplicas {
			n := &virtualNode{w: w, shard: shard, replica: replica, name: fmt.Sprintf("s%dr%d", shard, replica), peers: peers}
			n.host, n.insideAt, n.tcp, n.be = w.net.Host(n.name), n.name+":1", n.name+":2", n.name+":3"
			w.nodes = append(w.nodes, n)
		}
	}
	if mapped {
		w.first = w.mapOf(1)
		w.shardMap = w.first
	}
	for _, n := range w.nodes {
		n.boot()
	}
	for _, n := range w.nodes {
		<-n.serving
	}
	return w
}

// work is what a server does for a request: half a millisecond, and exponentially more, as
// much on average.
func (w *virtualWorld) work(call *archon.ServerCall, next archon.Handler) error {
	b := call.Payload()
	drawn := w.net.Draw(call.Method().String(), string(b[min(32, len(b)):])) // without what is random in an id
	time.Sleep(500*time.Microsecond - time.Duration(5e5*math.Log1p(-drawn)))
	if w.around != nil {
		return w.around(call, next)
	}
	return next(call)
}

// connect starts the client and its load.
func (w *virtualWorld) connect(seed uint64, cfg channel.Config) {
	cfg.Service, cfg.RDMA, cfg.TCP = "ps", w.rdma, archon.TCP{Network: w.net.Host("client")}
	var err error
	if w.recovery, err = cfg.Recovery.WithDefaults(); err != nil {
		w.t.Fatal(err)
	}
	for shard := range virtualShards {
		if w.first != nil {
			break
		}
		cfg.Resolver, cfg.Seed = &w.maps[shard], seed<<8|uint64(shard)|1<<63
		w.resolve(shard)
		ch, err := channel.New(cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		w.channels = append(w.channels, ch)
	}
	var c *ps.Client
	if w.first != nil {
		cfg.Resolver, cfg.Seed = nil, seed<<8|1<<63
		if c, err = ps.NewMapClient(virtualDim, w.first, cfg); err == nil {
			w.channels = c.Channels()
		}
	} else {
		c, err = ps.NewChannelClient(virtualDim, w.channels)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.virtualLoad = startVirtualLoad(w.t, c, w.rng.Uint64())
	w.ways = watchWays(w.channels)
}

// resolve tells the client's channel where the replicas of a shard are.
func (w *virtualWorld) resolve(shard int) {
	var list []channel.Endpoint
	for _, n := range w.nodes {
		if n.shard == shard {
			list = append(list, channel.Endpoint{Name: n.name, TCP: n.tcp, RDMA: n.be})
		}
	}
	w.maps[shard].set(list)
}

// virtualMap is a channel.Resolver whose answer may change.
type virtualMap struct {
	mu   sync.Mutex
	list []channel.Endpoint
	tell func([]channel.Endpoint, error)
}

func (m *virtualMap) set(list []channel.Endpoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = list
	if m.tell != nil {
		m.tell(list, nil)
	}
}

func (m *virtualMap) Watch(ctx context.Context, update func([]channel.Endpoint, error)) {
	m.mu.Lock()
	m.tell = update
	update(m.list, nil)
	m.mu.Unlock()
	<-ctx.Done()
}

// stats gives the state of the way to a replica.
func (w *virtualWorld) stats(n *virtualNode) channel.ReplicaStats {
	for _, r := range w.channels[n.shard].Stats().Replicas {
		if r.Name == n.name {
			return r
		}
	}
	return channel.ReplicaStats{}
}

// until waits for all of the nodes to be reached by a path; it tells how long that took,
// a minute if they were not.
func (w *virtualWorld) until(p core.Path, nodes ...*virtualNode) time.Duration {
	began := time.Now()
	for _, n := range nodes {
		for w.stats(n).Path != p && time.Since(began) < time.Minute {
			time.Sleep(5 * time.Millisecond)
		}
	}
	return time.Since(began)
}

// close ends everything.
func (w *virtualWorld) close() {
	if w.ways != nil {
		w.ways.stop()
		w.stopLoad()
		w.c.Close()
	}
	for _, n := range w.nodes {
		n.freeze(false)
	}
	for _, n := range w.nodes {
		w.ends.Go(n.end)
	}
	w.ends.Wait()
	for w.rdma.Close() != nil {
		time.Sleep(time.Millisecond)
	}
	w.fabric.Close()
}

// wayWatch looks at the ways to all replicas every few milliseconds: it is what the
// channel's own counts are held against.
type wayWatch struct {
	end    context.CancelFunc
	done   chan struct{}
	onTCP  map[string]bool
	onRDMA map[string]bool
	falls  map[string]uint64 // times that a replica came to be reached over TCP after RDMA, or at first
	backs  map[string]uint64 // and times back
}

func watchWays(channels []*channel.Channel) *wayWatch {
	ctx, cancel := context.WithCancel(context.Background())
	v := &wayWatch{end: cancel, done: make(chan struct{}), onTCP: map[string]bool{}, onRDMA: map[string]bool{}, falls: map[string]uint64{}, backs: map[string]uint64{}}
	go func() {
		defer close(v.done)
		for ctx.Err() == nil {
			for _, ch := range channels {
				for _, r := range ch.Stats().Replicas {
					v.see(r.Name, r.Path)
				}
			}
			time.Sleep(3 * time.Millisecond)
		}
	}()
	return v
}

func (v *wayWatch) see(name string, p core.Path) {
	switch {
	case p == core.TCP && !v.onTCP[name]:
		v.onTCP[name] = true
		v.falls[name]++
	case p == core.RDMA && v.onTCP[name]:
		v.onTCP[name] = false
		v.backs[name]++
	}
}

func (v *wayWatch) stop() {
	v.end()
	<-v.done
}
