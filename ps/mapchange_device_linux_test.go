package ps_test

import (
	"context"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/ps"
)

// TestDeviceMapChangeProcesses: of 3 shards of two replicas, each in a process of its own,
// one's rows move to another and back while they are pushed to and fetched over RDMA on a
// real device. No call fails or goes over TCP, and in the end every push is there once.
// Calls are paced: an emulated processor has to keep the replicas' leases too.
func TestDeviceMapChangeProcesses(t *testing.T) {
	const shards, calls = 3, 60
	name := testdev.Name(t)
	at, _ := startMapReplicas(t, shards, shards, 5*time.Second, name)
	d := deviceNamed(name)
	t.Cleanup(func() { eventually(t, "close the device", func() bool { return d.Close() == nil }) })
	now := ps.NewMap(ps.ByHash, at...)
	c, err := ps.NewMapClient(replicaDim, now, channel.Config{Service: "ps", RDMA: d, NoFallback: true, Recovery: channel.Recovery{PingTimeout: 3 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	l := startPacedPushes(t, c, 3, 20*time.Millisecond)
	onRDMA := func(desc string) {
		t.Helper()
		eventually(t, desc+": all replicas are reached over RDMA", func() bool {
			n := 0
			for _, ch := range c.Channels() {
				for _, r := range ch.Stats().Replicas {
					if r.Path == core.RDMA {
						n++
					}
				}
			}
			return n == shards*mapReplicas
		})
	}
	onRDMA("begin")
	l.take()
	l.more(calls)
	steady := l.take()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, owner := range []int{1, 0} {
		next := ps.NewMap(ps.ByHash, at...)
		next.Version, next.Bounds[0].Shard = now.Version+1, owner
		began, from := time.Now(), l.calls.Load()
		if err := ps.Rebalance(ctx, now, next, ps.RebalanceConfig{Timeout: time.Second, Freeze: 4 * time.Second}); err != nil {
			t.Fatal(err)
		}
		took, during := time.Since(began), l.calls.Load()-from
		now = next
		l.more(calls)
		t.Logf("shard 0's rows are shard %d's after %v and %d calls: p99 %v, %v before", owner, took, during, l.take(), steady)
		onRDMA("the map has changed")
	}
	l.stop()
	if got, want := l.sum(), float64(l.pushes.Load()); got != want || c.Map().Version != now.Version {
		t.Errorf("at map %d of %d, the rows hold %v pushes of %v", c.Map().Version, now.Version, got, want)
	}
	for i, ch := range c.Channels() {
		st := ch.Stats()
		t.Logf("shard %d: %+v, %d denied", i, st.CallStats, st.Denied)
	}
}
