//go:build unix

package ps_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testprocess"
	"github.com/byteexpress/byteexpress/ps"
)

const mapReplicas = 2 // of a shard

// startMapReplicas starts the replicas of shards, each in a process of its own, of which the
// first are in the first map. They are reached over RDMA too if there is a device.
func startMapReplicas(t *testing.T, shards, first int, lease time.Duration, device string) ([][]channel.Endpoint, [][]*testprocess.Process) {
	t.Helper()
	at := make([][]channel.Endpoint, shards)
	for i := range at {
		for j := range mapReplicas {
			e := channel.Endpoint{Name: fmt.Sprint(i, ".", j), TCP: testprocess.Addr(t)}
			if device != "" {
				e.RDMA = testprocess.Addr(t)
			}
			at[i] = append(at[i], e)
		}
	}
	text, err := ps.NewMap(ps.ByHash, at[:first]...).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	all := make([][]*testprocess.Process, shards)
	for i, list := range at {
		peers := testprocess.Addr(t) + " " + testprocess.Addr(t)
		for j, e := range list {
			p := testprocess.New(t, replicaEnv, fmt.Sprintln(lease, i, shards, j, cmp.Or(device, "-"), e.TCP, cmp.Or(e.RDMA, "-"), peers)+string(text))
			p.Start()
			all[i] = append(all[i], p)
		}
	}
	for _, p := range slices.Concat(all...) {
		p.Line()
	}
	return at, all
}

// TestMapChangeProcesses: shards of two replicas, each in a process of its own, under load
// while the map changes: a shard comes, ranges move, replicas are left out and come back,
// a shard goes, and its processes end. No call fails, and in the end every push is there
// once. A client that did nothing meanwhile finds its way too.
func TestMapChangeProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	const shards, calls = 4, 300
	cfg := channel.Config{Service: "ps", Recovery: channel.Recovery{PingInterval: 200 * time.Millisecond, PingTimeout: time.Second, RedialMax: 200 * time.Millisecond}}
	at, all := startMapReplicas(t, shards, shards-1, 400*time.Millisecond, "")
	now := ps.NewMap(ps.ByHash, at[:shards-1]...)
	client := func() *ps.Client {
		c, err := ps.NewMapClient(replicaDim, now, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	idle, busy := client(), client()
	l := startPushes(t, busy)
	l.more(calls)
	steady := l.take()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	change := func(desc string, next *ps.Map) {
		t.Helper()
		next.Version = now.Version + 1
		began := time.Now()
		if err := ps.Rebalance(ctx, now, next, ps.RebalanceConfig{}); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		now = next
		l.more(calls)
		t.Logf("%s in %v: p99 %v, %v before", desc, took, l.take(), steady)
	}
	change("a shard comes", ps.NewMap(ps.ByHash, at...))
	other := ps.NewMap(ps.ByHash, at...)
	for i := range other.Bounds {
		other.Bounds[i].Shard = (i + 1) % shards
	}
	change("all ranges move", other)
	fewer := *other
	fewer.Replicas = slices.Clone(at)
	for i := range fewer.Replicas {
		fewer.Replicas[i] = fewer.Replicas[i][i%mapReplicas:][:1]
	}
	change("replicas are left out", &fewer)
	back := *other
	change("they come back", &back)
	change("all ranges move back", ps.NewMap(ps.ByHash, at...))
	last := ps.NewMap(ps.ByHash, at[:shards-1]...)
	slices.Reverse(last.Replicas[0]) // the order of replicas means nothing
	last.Bounds[0].Shard, last.Bounds[1].Shard = 1, 0
	change("a shard goes", last)
	for _, p := range all[shards-1] {
		p.Kill()
	}
	l.more(calls)
	if busy.Shards() != shards-1 {
		t.Errorf("the client has %d shards of %d", busy.Shards(), shards-1)
	}
	l.stop()
	if got, want := l.sum(), float64(l.pushes.Load()); got != want {
		t.Errorf("the rows hold %v pushes of %v", got, want)
	}
	l.c = idle
	if got, want := l.sum(), float64(l.pushes.Load()); got != want || idle.Map().Version != now.Version {
		t.Errorf("to a client that was idle, at map %d of %d, the rows hold %v pushes of %v", idle.Map().Version, now.Version, got, want)
	}
}
