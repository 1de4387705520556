package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/rpcjob"
)

// overAuto is the row of calls over RDMA where that works, and over TCP where it does not.
const overAuto = "auto"

// replicas measures calls by a channel to several servers, in this process or on hosts.
func (r *rpcRun) replicas(m mode, hosts []string) (err error) {
	var endpoints []channel.Endpoint
	var stop func()
	if m == client {
		endpoints, stop, err = r.hosts(hosts)
	} else {
		endpoints, stop, err = r.localReplicas()
	}
	if err != nil {
		return err
	}
	defer stop()
	cfg := channel.Config{Service: "bench", Resolver: channel.Static(endpoints...), Idempotent: rpcjob.Idempotent(), NoFallback: r.f.transport == "be"}
	if r.f.transport != "tcp" {
		t, end, err := r.open("be")()
		if err != nil {
			return err
		}
		defer func() {
			if endErr := end(); err == nil {
				err = endErr
			}
		}()
		cfg.RDMA = t
	}
	if r.ch, err = channel.New(cfg); err != nil {
		return err
	}
	c := rpcjob.OverChannel(r.ch)
	defer c.Close()
	defer context.AfterFunc(r.e.soft, c.Stop)()
	ready, cancel := context.WithTimeout(r.e.soft, time.Duration(r.f.peer.timeout))
	err = r.ch.Wait(ready)
	cancel()
	if err != nil {
		return errors.WithMessage(err, "step rpc")
	}
	defer func() { r.state = r.ch.Stats() }()
	return r.rounds(r.e.hard, map[string]*rpcjob.Client{r.over[0]: c})
}

// localReplicas starts the servers in this process, of which one may be ended after a while.
func (r *rpcRun) localReplicas() (list []channel.Endpoint, stop func(), err error) {
	var servers []*rpcServer
	timer := time.AfterFunc(time.Hour, func() { _ = servers[len(servers)-1].close() })
	timer.Stop()
	stop = func() {
		if timer.Stop() && r.f.kill > 0 {
			r.o.printf(" --kill %v: the run was over before, and all servers were there\n", time.Duration(r.f.kill))
		}
		for _, s := range servers {
			_ = s.close()
		}
	}
	for i := range r.f.replicas {
		s, err := r.startServer(r.e.hard, "127.0.0.1")
		if err != nil {
			stop()
			return nil, nil, err
		}
		servers = append(servers, s)
		list = append(list, endpoint(strconv.Itoa(i), s.Addrs))
	}
	if r.f.kill > 0 {
		timer.Reset(time.Duration(r.f.kill))
	}
	return list, stop, nil
}

func endpoint(name string, addrs map[string]string) channel.Endpoint {
	return channel.Endpoint{Name: name, RDMA: addrs["be"], TCP: addrs["tcp"]}
}

// hosts asks the servers on hosts for their addresses. A server that ends meanwhile is a
// replica that is lost, and no end of the measurement.
func (r *rpcRun) hosts(hosts []string) (list []channel.Endpoint, stop func(), err error) {
	var sessions []*control.Session
	var conns []*control.Conn
	stop = func() {
		for _, s := range sessions {
			if s.Err() == nil && s.Finished(nil) == nil {
				_ = s.Conclude(func() any { return "" }, nil)
			}
			s.End(nil)
		}
		for _, c := range conns {
			c.Close()
		}
	}
	for _, host := range hosts {
		c, err := control.Dial(r.e.soft, net.JoinHostPort(hostPort(host, r.f.peer.port)), time.Duration(r.f.peer.timeout))
		if err != nil {
			stop()
			return nil, nil, err
		}
		c = c.Within(r.e.hard)
		conns = append(conns, c)
		var there rpcThere
		if err = c.Greet(r.ends.hello); err == nil {
			err = c.Recv("rpc", &there)
		}
		if err != nil {
			stop()
			return nil, nil, err
		}
		sessions = append(sessions, c.Begin(r.e.hard, func(json.RawMessage) error { return nil }))
		list = append(list, endpoint(host, there.Addrs))
	}
	return list, stop, nil
}

// hostPort splits "host" or "host:port".
func hostPort(host string, port int) (string, string) {
	if h, p, err := net.SplitHostPort(host); err == nil {
		return h, p
	}
	return host, strconv.Itoa(port)
}

// counted is what the channel has counted, by the names of the counters; nil: there is none.
func (r *rpcRun) counted() map[string]int64 {
	if r.ch == nil {
		return nil
	}
	st := r.ch.Stats()
	m := map[string]int64{
		"calls": int64(st.Calls), "attempts": int64(st.Attempts), "hedged": int64(st.Hedged), "failed": int64(st.Failed), "denied": int64(st.Denied), "ejections": int64(st.Ejections),
	}
	for _, s := range st.Replicas {
		m["attempts_at_"+s.Name] = int64(s.Attempts)
		m["returns"] += int64(s.Returns)
		m["restarts"] += int64(s.Restarts)
		for reason, n := range s.Fallbacks {
			m["fallback_"+reason.String()] += int64(n)
		}
	}
	return m
}

// since is what was counted after before.
func (r *rpcRun) since(before map[string]int64) map[string]int64 {
	m := r.counted()
	for name := range m {
		m[name] -= before[name]
	}
	return m
}

// writeReplicas says how the channel and its replicas fared.
func (r *rpcRun) writeReplicas() {
	st := &r.state
	if r.ch == nil {
		return
	}
	_ = report.Rule(r.o.text)
	r.o.printf(" With those to warm up: %d calls, %d attempts (%.3f a call), %d calls hedged, %d failed; %d retries and hedges denied by the budget, %d ejections.\n",
		st.Calls, st.Attempts, float64(st.Attempts)/float64(max(st.Calls, 1)), st.Hedged, st.Failed, st.Denied, st.Ejections)
	r.o.printf(" %-20s %-6s %10s %14s %-8s %8s  %s\n", "replica", "over", "attempts", "latency[usec]", "ejected", "restarts", "fallbacks to TCP, and what is wrong")
	slices.SortFunc(st.Replicas, func(a, b channel.ReplicaStats) int { return strings.Compare(a.Name, b.Name) })
	for i := range st.Replicas {
		s := &st.Replicas[i]
		var notes []string
		for _, reason := range slices.Sorted(maps.Keys(s.Fallbacks)) {
			notes = append(notes, fmt.Sprintf("%v x%d", reason, s.Fallbacks[reason]))
		}
		if s.Returns > 0 {
			notes = append(notes, fmt.Sprintf("%d returns", s.Returns))
		}
		if s.Path == core.NoPath && s.Trouble != nil {
			notes = append(notes, s.Trouble.Error())
		}
		line := fmt.Sprintf(" %-20s %-6s %10d %14.1f %-8v %8d  %s", s.Name, s.Path, s.Attempts, float64(s.Latency)/float64(time.Microsecond), s.Ejected, s.Restarts, strings.Join(notes, "; "))
		r.o.printf("%s\n", strings.TrimRight(line, " "))
	}
}
