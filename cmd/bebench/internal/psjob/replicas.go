package psjob

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/ps"
)

// Over is what the replicas of a table are reached over. They listen on TCP in any case:
// there they reach each other, and there the map is changed.
type Over struct {
	Name     string // of the rows
	RDMA     Open   // nil: none
	Fallback bool   // to TCP, where RDMA fails
}

// At is where a replica is.
type At struct {
	Shard    int              `json:"shard"`
	Replica  int              `json:"replica"`
	Peer     string           `json:"peer"` // where the others of the shard reach it
	Endpoint channel.Endpoint `json:"endpoint"`
}

// Replicas are those replicas of a table that are in this process, each with servers of
// its own. Close ends them.
type Replicas struct {
	cfg     *Config
	list    []*replica
	serving sync.WaitGroup
}

type replica struct {
	At
	closing          sync.Once
	closers          []func() error
	err              error
	memory           ps.Memory
	peers, tcp, rdma archon.Listener
}

// Listen takes addresses of the host for those replicas for which here gives true.
func Listen(cfg *Config, over Over, host string, here func(shard, replica int) bool) (_ *Replicas, err error) {
	s := &Replicas{cfg: cfg}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	for shard := range cfg.servers() {
		for n := range cfg.Replicas {
			if !here(shard, n) {
				continue
			}
			r := &replica{At: At{Shard: shard, Replica: n, Endpoint: channel.Endpoint{Name: fmt.Sprintf("%d.%d", shard, n)}}}
			s.list = append(s.list, r)
			if err := r.listen(over, host); err != nil {
				return nil, errors.WithMessagef(err, "replica %s", r.Endpoint.Name)
			}
		}
	}
	return s, nil
}

func (r *replica) listen(over Over, host string) (err error) {
	take := func(t archon.Transport, addr *string) (l archon.Listener) {
		if err == nil {
			if l, err = t.Listen(joinPort(host)); err == nil {
				*addr = l.Addr().String()
				r.closers = append(r.closers, l.Close)
			}
		}
		return l
	}
	if over.RDMA != nil {
		t, closeTransport, err := over.RDMA()
		if err != nil {
			return err
		}
		r.closers = append(r.closers, closeTransport)
		if on, ok := t.(archon.BE); ok {
			r.memory = on.Node
		}
		r.rdma = take(t, &r.Endpoint.RDMA)
	}
	r.peers, r.tcp = take(archon.TCP{}, &r.Peer), take(archon.TCP{}, &r.Endpoint.TCP)
	return err
}

// At tells where the replicas are.
func (s *Replicas) At() (list []At) {
	for _, r := range s.list {
		list = append(list, r.At)
	}
	return list
}

// Serve has the replicas serve a table of which all are known, with the rows of the given
// keys, and waits until they do. ctx ends them.
func (s *Replicas) Serve(ctx context.Context, wait time.Duration, all []At, keys []uint64) error {
	m, peers := s.cfg.Map(all, s.cfg.Shards), s.cfg.peers(all)
	var replicas []*ps.Replica
	for _, r := range s.list {
		p, err := s.serve(ctx, r, m, peers[r.Shard], keys)
		if err != nil {
			return errors.WithMessagef(err, "replica %s", r.Endpoint.Name)
		}
		replicas = append(replicas, p)
	}
	ready, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for i, r := range s.list {
		if err := replicas[i].Wait(ready); err != nil {
			return errors.WithMessagef(err, "replica %s", r.Endpoint.Name)
		}
	}
	return nil
}

func (s *Replicas) serve(ctx context.Context, r *replica, m *ps.Map, peers []string, keys []uint64) (*ps.Replica, error) {
	cfg := s.cfg.shard(r.Shard)
	cfg.Shards, cfg.Map, cfg.Memory = 0, m, r.memory
	shard, err := ps.NewShard(cfg)
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, shard.Close)
	if err := shard.Create(keys); err != nil {
		return nil, err
	}
	// As many workers as requests may come at once, since pushes wait for other replicas.
	inside, outside := archon.NewServer(archon.ServerConfig{}), archon.NewServer(archon.ServerConfig{Workers: min(s.cfg.Workers*s.cfg.Outstanding, maxServerWorkers) + 8})
	p, err := shard.Replicate(inside, ps.ReplicaConfig{Peers: peers, Self: r.Replica, Lease: lease, LogBytes: max(leastLog, 8*s.cfg.MaxBytes)})
	if err != nil {
		return nil, err
	}
	// Clients go first: what they wait for is lost with their connections, as when a server
	// dies, and not refused.
	r.closers = append(r.closers, p.Close, inside.Close, outside.Close)
	if err := shard.Register(outside); err != nil {
		return nil, err
	}
	run := func(srv *archon.Server, l archon.Listener) {
		if l != nil {
			s.serving.Go(func() { _ = srv.Serve(ctx, l) })
		}
	}
	run(inside, r.peers)
	run(outside, r.tcp)
	run(outside, r.rdma)
	return p, nil
}

const (
	maxServerWorkers = 1024
	leastLog         = 16 << 20
	// lease is that of replicas: pushes wait about so long for one that ended.
	lease = time.Second
)

// Close stops the replicas and waits for them.
func (s *Replicas) Close() error {
	var first error
	for i := len(s.list) - 1; i >= 0; i-- {
		if err := s.list[i].close(); first == nil {
			first = err
		}
	}
	s.serving.Wait()
	return first
}

// close ends the replica, once.
func (r *replica) close() error {
	r.closing.Do(func() { r.err = closeAll(&r.closers) })
	return r.err
}

// StopOne ends one replica, and waits until the others go on without it.
func (s *Replicas) StopOne(ctx context.Context) error {
	err := s.list[0].close()
	select {
	case <-time.After(2 * lease):
	case <-ctx.Done():
	}
	return err
}

// closeAll closes in reverse order, and gives the first error.
func closeAll(closers *[]func() error) (first error) {
	for i := len(*closers) - 1; i >= 0; i-- {
		if err := (*closers)[i](); first == nil {
			first = err
		}
	}
	*closers = nil
	return first
}

// servers is how many shards there are servers of.
func (c *Config) servers() int { return max(c.Shards, c.ThenShards) }

// Map is the table's first map, by so many of its shards.
func (c *Config) Map(all []At, shards int) *ps.Map {
	lists := make([][]channel.Endpoint, shards)
	for i := range all {
		if at := &all[i]; at.Shard < shards {
			lists[at.Shard] = append(lists[at.Shard], at.Endpoint)
		}
	}
	return ps.NewMap(ps.ByHash, lists...)
}

// Rebalance changes the table's map to ThenShards shards.
func (c *Config) Rebalance(ctx context.Context, all []At) error {
	from, to := c.Map(all, c.Shards), c.Map(all, c.ThenShards)
	to.Version++
	return ps.Rebalance(ctx, from, to, ps.RebalanceConfig{})
}

// peers are the addresses at which the replicas of each shard reach each other.
func (c *Config) peers(all []At) [][]string {
	list := make([][]string, c.servers())
	for i := range list {
		list[i] = make([]string, c.Replicas)
	}
	for _, at := range all {
		list[at.Shard][at.Replica] = at.Peer
	}
	return list
}

// Complete tells whether all replicas are there, each once.
func (c *Config) Complete(all []At) error {
	seen := map[[2]int]bool{}
	for _, at := range all {
		if at.Shard < 0 || at.Shard >= c.servers() || at.Replica < 0 || at.Replica >= c.Replicas || at.Peer == "" || at.Endpoint.TCP == "" {
			return errors.Errorf("replica %d of shard %d is none of the table's", at.Replica, at.Shard)
		}
		seen[[2]int{at.Shard, at.Replica}] = true
	}
	if want := c.servers() * c.Replicas; len(seen) != want || len(all) != want {
		return errors.Errorf("%d replicas, want %d", len(all), want)
	}
	return nil
}

// connect makes a worker's client.
func (over *Over) connect(cfg *Config, m *ps.Map) (*ps.Client, []func() error, error) {
	var closers []func() error
	ch := channel.Config{Service: "ps", NoFallback: over.RDMA != nil && !over.Fallback}
	if over.RDMA != nil {
		t, closeTransport, err := over.RDMA()
		if err != nil {
			return nil, nil, err
		}
		closers, ch.RDMA = append(closers, closeTransport), t
	}
	c, err := ps.NewMapClient(cfg.Dim, m, ch)
	if err != nil {
		_ = closeAll(&closers)
		return nil, nil, err
	}
	return c, append(closers, c.Close), nil
}
