package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/psjob"
)

// shardsWanted is the client's message of the step "shards": which of the shards
// are to be at this server.
type shardsWanted struct {
	Host  int `json:"host"` // this server's place among the hosts, from 0
	Hosts int `json:"hosts"`
	Rows  int `json:"rows"` // synthetic keys whose rows are made beforehand; 0: none

	// Of replicas.
	ThenShards  int `json:"then_shards,omitempty"`
	MaxBytes    int `json:"max_bytes,omitempty"` // of rows in a request
	Workers     int `json:"workers,omitempty"`
	Outstanding int `json:"outstanding,omitempty"` // requests of each worker
}

// shardsThere is the server's answer: the addresses of its shards by transport;
// empty for those of other hosts. Of replicas it is where they are, and the client answers
// with those of all hosts.
type shardsThere struct {
	Addrs    map[string][]string   `json:"addrs,omitempty"`
	Replicas map[string][]psjob.At `json:"replicas,omitempty"`
}

// psServer serves shards to workers in other processes. Each client gets a table
// of its own.
type psServer struct {
	f     *psFlags
	jobs  *jobSet
	hello control.Hello
}

func (s *psServer) run() error {
	ends := twoEnds{e: s.jobs.e, peer: &s.f.peer, hello: s.hello, serve: s.serve}
	return ends.server()
}

func (s *psServer) serve(ctx context.Context, c *control.Conn) (err error) {
	var want shardsWanted
	if err := c.Recv("shards", &want); err != nil {
		return err
	}
	if want.Hosts < 1 || want.Host < 0 || want.Host >= want.Hosts || want.Rows != 0 && want.Rows != s.f.cfg.Rows {
		err := errors.Errorf("step shards: host %d of %d, %d rows", want.Host, want.Hosts, want.Rows)
		c.Fail(err)
		return err
	}
	var keys []uint64
	if want.Rows > 0 {
		keys = psjob.Distinct(psjob.Synthetic(want.Rows, s.f.cfg.Seed))
	}
	if s.f.cfg.Replicas > 0 {
		return s.serveReplicas(ctx, c, want, keys)
	}
	there := shardsThere{Addrs: map[string][]string{}}
	for _, name := range s.f.names() {
		open, _ := s.jobs.transport(name)
		shards, err := psjob.StartShards(ctx, &s.f.cfg, open, c.LocalHost(), keys, func(i int) bool { return i%want.Hosts == want.Host })
		if err != nil {
			c.Fail(err)
			return err
		}
		defer func() {
			if closeErr := shards.Close(); err == nil {
				err = closeErr
			}
		}()
		there.Addrs[name] = shards.Addrs
	}
	if err := c.Send("shards", there); err != nil {
		return err
	}
	return s.until(ctx, c)
}

// until waits for the client's end.
func (s *psServer) until(ctx context.Context, c *control.Conn) (err error) {
	session := c.Begin(ctx, func(json.RawMessage) error { return nil })
	defer func() { session.End(err) }()
	if err := session.Finished(nil); err != nil {
		return err
	}
	return session.Conclude(func() any { return "" }, nil)
}

// psClient runs workers against shards in other processes.
type psClient struct {
	f     *psFlags
	jobs  *jobSet
	hello control.Hello

	conns    []*control.Conn
	sessions []*control.Session
	watches  []func() bool // end the watching of sessions
}

func (p *psClient) run(hosts []string, stream []uint64) (err error) {
	defer func() {
		for _, s := range p.sessions {
			s.End(err)
		}
		for _, c := range p.conns {
			c.Close()
		}
	}()
	there := shardsThere{Addrs: map[string][]string{}, Replicas: map[string][]psjob.At{}}
	for i, host := range hosts {
		if err := p.ask(host, i, len(hosts), &there); err != nil {
			return err
		}
	}
	if p.f.cfg.Replicas > 0 {
		if err := p.introduce(&there); err != nil {
			return err
		}
	}
	if err := p.connect(&there, stream); err != nil {
		return err
	}
	if err := p.f.drive(p.jobs); err != nil {
		return p.cause(err)
	}
	for _, stop := range p.watches {
		stop()
	}
	// Connections first: then the end of the shards is no loss.
	if err := p.jobs.close(); err != nil {
		return err
	}
	for _, s := range p.sessions {
		if err := s.Finished(nil); err != nil {
			return err
		}
		if err := s.Conclude(func() any { return "" }, nil); err != nil {
			return err
		}
	}
	return nil
}

// ask agrees with one host and learns where its shards are.
func (p *psClient) ask(host string, i, n int, all *shardsThere) error {
	e := p.jobs.e
	c, err := control.Dial(e.soft, net.JoinHostPort(hostPort(host, p.f.peer.port)), time.Duration(p.f.peer.timeout))
	if err != nil {
		return err
	}
	c = c.Within(e.hard)
	p.conns = append(p.conns, c)
	if err := c.Greet(p.hello); err != nil {
		return err
	}
	want := shardsWanted{Host: i, Hosts: n, Rows: p.f.cfg.Rows}
	if p.f.keysFrom != "" {
		want.Rows = 0
	}
	if cfg := &p.f.cfg; cfg.Replicas > 0 {
		want.ThenShards, want.MaxBytes, want.Workers, want.Outstanding = cfg.ThenShards, cfg.MaxBytes, cfg.Workers, cfg.Outstanding
	}
	if err := c.Send("shards", want); err != nil {
		return err
	}
	var there shardsThere
	if err := c.Recv("shards", &there); err != nil {
		return err
	}
	for _, name := range p.f.names() {
		if p.f.cfg.Replicas > 0 {
			all.Replicas[name] = append(all.Replicas[name], there.Replicas[name]...)
			continue
		}
		got, addrs := there.Addrs[name], all.Addrs
		if len(got) != p.f.cfg.Shards {
			return fmt.Errorf("step shards with %s: %d addresses over %s, want %d", c.Peer(), len(got), name, p.f.cfg.Shards)
		}
		if addrs[name] == nil {
			addrs[name] = make([]string, len(got))
		}
		for s, addr := range got {
			if s%n == i {
				addrs[name][s] = addr
			}
		}
	}
	if p.f.cfg.Replicas == 0 {
		p.begin(c)
	}
	return nil
}

// begin begins the session with a server whose shards serve.
func (p *psClient) begin(c *control.Conn) {
	p.sessions = append(p.sessions, c.Begin(p.jobs.e.hard, func(json.RawMessage) error { return nil }))
}

// connect starts a driver for each transport.
func (p *psClient) connect(there *shardsThere, stream []uint64) error {
	for _, name := range p.f.names() {
		var d *psjob.Driver
		var err error
		open, counters := p.jobs.transport(name)
		if p.f.cfg.Replicas > 0 {
			d, err = psjob.NewMapDriver(&p.f.cfg, over(name, open), there.Replicas[name], stream)
		} else {
			d, err = psjob.NewDriver(p.jobs.e.hard, &p.f.cfg, name, open, there.Addrs[name], stream)
		}
		if err != nil {
			return p.cause(err)
		}
		d.Counters = counters
		// A server that is no longer heard of may never answer what is outstanding.
		for _, s := range p.sessions {
			p.watches = append(p.watches, context.AfterFunc(s.Context(), d.Abort))
		}
		p.jobs.jobs = append(p.jobs.jobs, &job{Driver: d, name: name, all: there.Replicas[name], close: d.Close})
	}
	return nil
}

// cause prefers what a server said over what its end looked like from here.
func (p *psClient) cause(err error) error {
	for _, s := range p.sessions {
		if s.Err() != nil {
			return s.Err()
		}
	}
	return err
}
