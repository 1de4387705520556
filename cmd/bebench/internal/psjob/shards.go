package psjob

import (
	"context"
	"sync"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/ps"
)

// Open makes a transport for one shard or one worker, and what closes it. Each gets
// its own, as if it were a process of its own.
type Open func() (archon.Transport, func() error, error)

// OverTCP opens TCP transports.
func OverTCP() (archon.Transport, func() error, error) {
	return archon.TCP{}, func() error { return nil }, nil
}

// Shards is a set of running shards of one table.
type Shards struct {
	Addrs   []string // by shard; empty for those that are not here
	closers []func() error
	serving sync.WaitGroup
}

// StartShards runs those shards of the table for which here gives true, each on
// its own port of the host, and makes the rows of the given keys.
func StartShards(ctx context.Context, cfg *Config, open Open, host string, keys []uint64, here func(shard int) bool) (_ *Shards, err error) {
	s := &Shards{Addrs: make([]string, cfg.Shards)}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	for i := range cfg.Shards {
		if !here(i) {
			continue
		}
		if err := s.start(ctx, cfg, open, host, keys, i); err != nil {
			return nil, errors.WithMessagef(err, "shard %d", i)
		}
	}
	return s, nil
}

func (s *Shards) start(ctx context.Context, cfg *Config, open Open, host string, keys []uint64, i int) error {
	transport, closeTransport, err := open()
	if err != nil {
		return err
	}
	s.closers = append(s.closers, closeTransport)
	shardCfg := cfg.shard(i)
	if on, ok := transport.(archon.BE); ok {
		shardCfg.Memory = on.Node // rows are sent from where they lie
	}
	shard, err := ps.NewShard(shardCfg)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, shard.Close)
	if err := shard.Create(keys); err != nil {
		return err
	}
	server := archon.NewServer(archon.ServerConfig{})
	if err := shard.Register(server); err != nil {
		return err
	}
	ln, err := transport.Listen(joinPort(host))
	if err != nil {
		return err
	}
	s.Addrs[i] = ln.Addr().String()
	s.closers = append(s.closers, ln.Close, server.Close)
	s.serving.Go(func() { _ = server.Serve(ctx, ln) })
	return nil
}

// Close stops the shards and waits for them.
func (s *Shards) Close() error {
	first := closeAll(&s.closers)
	s.serving.Wait()
	return first
}
