package main

import (
	"context"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/psjob"
)

// serveReplicas serves this host's part of a table of replicas: it takes addresses for
// them, learns those of all others, and says when its own serve.
func (s *psServer) serveReplicas(ctx context.Context, c *control.Conn, want shardsWanted, keys []uint64) (err error) {
	fail := func(err error) error {
		err = errors.WithMessage(err, "step shards")
		c.Fail(err)
		return err
	}
	cfg := s.f.cfg
	cfg.ThenShards, cfg.MaxBytes, cfg.Workers, cfg.Outstanding = want.ThenShards, max(want.MaxBytes, 1), want.Workers, want.Outstanding
	cfg.MinBytes = 1
	if err := cfg.Check(); err != nil {
		return fail(err)
	}
	tables := map[string]*psjob.Replicas{}
	mine := shardsThere{Replicas: map[string][]psjob.At{}}
	for _, name := range s.f.names() {
		open, _ := s.jobs.transport(name)
		t, err := psjob.Listen(&cfg, over(name, open), c.LocalHost(), func(shard, replica int) bool { return (shard+replica)%want.Hosts == want.Host })
		if err != nil {
			return fail(err)
		}
		defer func() {
			if closeErr := t.Close(); err == nil {
				err = closeErr
			}
		}()
		tables[name], mine.Replicas[name] = t, t.At()
	}
	if err := c.Send("shards", mine); err != nil {
		return err
	}
	var all shardsThere
	if err := c.Recv("replicas", &all); err != nil {
		return err
	}
	for name, t := range tables {
		err := cfg.Complete(all.Replicas[name])
		if err == nil {
			err = t.Serve(ctx, c.Limit()*3/4, all.Replicas[name], keys)
		}
		if err != nil {
			return fail(err)
		}
	}
	if err := c.Send("replicas", ""); err != nil {
		return err
	}
	return s.until(ctx, c)
}

// introduce tells all hosts where all replicas are, and waits until they serve.
func (p *psClient) introduce(all *shardsThere) error {
	for name, list := range all.Replicas {
		if err := p.f.cfg.Complete(list); err != nil {
			return errors.WithMessagef(err, "step shards over %s", name)
		}
	}
	for _, c := range p.conns {
		if err := c.Send("replicas", all); err != nil {
			return err
		}
	}
	for _, c := range p.conns {
		var serves string
		if err := c.Recv("replicas", &serves); err != nil {
			return err
		}
		p.begin(c)
	}
	return nil
}
