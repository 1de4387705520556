package ps_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/internal/testprocess"
	"github.com/byteexpress/byteexpress/ps"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 minutes", what)
		}
	}
}

// rdmaHost gives a simulated device, and a transport on it that cannot open it while
// broken.
func rdmaHost(t testing.TB, f *sim.Fabric, name string, broken *atomic.Bool) (*sim.Device, *channel.Device) {
	t.Helper()
	dev, err := f.NewDevice(name, sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	on := testmodel.On(t, dev)
	d := channel.NewDevice(func() (verbs.Context, error) {
		if broken != nil && broken.Load() {
			return nil, syscall.EIO
		}
		return on.Open()
	}, be.Config{AckTimeout: 10, RetryCount: 2, StepTimeout: time.Second, Linger: 100 * time.Millisecond})
	t.Cleanup(func() { eventually(t, "close the device", func() bool { return d.Close() == nil }) })
	return dev, d
}

// serveRDMA serves a replica's shard at an address of a device too, to the test's end.
func serveRDMA(t testing.TB, s *ps.Shard, r *ps.Replica, host *channel.Device, addr string) archon.Listener {
	over := archon.NewServer(archon.ServerConfig{Workers: 32})
	if err := s.Register(over); err != nil {
		t.Fatal(err)
	}
	l, err := host.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- over.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		r.Close()
		over.Close()
		l.Close()
		<-served
	})
	return l
}

// TestReplicasOverFailingRDMA: two replicas are pushed to and fetched from while RDMA
// cannot be set up, works, dies and heals. No call fails, the ways are counted with their
// reasons, and every push is there once.
func TestReplicasOverFailingRDMA(t *testing.T) {
	fabric := sim.NewFabric(sim.Config{})
	var broken atomic.Bool
	broken.Store(true)
	client, onClient := rdmaHost(t, fabric, "sim:client", &broken)
	cfg, peers := ps.Config{Dim: replicaDim, LearningRate: 1}, []string{testprocess.Addr(t), testprocess.Addr(t)}
	var devices []*sim.Device
	var list []channel.Endpoint
	var replicas []*ps.Replica
	for i, name := range []string{"a", "b"} {
		dev, host := rdmaHost(t, fabric, "sim:"+name, nil)
		s, r, at, _ := replicaOf(t, tcp, cfg, peers, i, "127.0.0.1:0")
		l := serveRDMA(t, s, r, host, "127.0.0.1:0")
		devices, replicas = append(devices, dev), append(replicas, r)
		list = append(list, channel.Endpoint{Name: name, TCP: at, RDMA: l.Addr().String()})
	}
	for _, r := range replicas {
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ch, err := channel.New(channel.Config{Service: "ps", Resolver: channel.Static(list...), RDMA: onClient,
		Recovery: channel.Recovery{PingInterval: 200 * time.Millisecond, PingTimeout: time.Second, Settle: 200 * time.Millisecond, RedialMax: 200 * time.Millisecond, DialTimeout: 2 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := ps.NewChannelClient(replicaDim, []*channel.Channel{ch})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := func(p core.Path) func() bool {
		return func() bool {
			n := 0
			for _, r := range ch.Stats().Replicas {
				if r.Path == p {
					n++
				}
			}
			return n == len(list)
		}
	}
	l := startPushes(t, c)
	defer l.stop()
	eventually(t, "calls go over TCP while RDMA cannot be opened", all(core.TCP))
	l.more(100)
	broken.Store(false)
	eventually(t, "calls go over RDMA", all(core.RDMA))
	l.more(100)
	for range 2 {
		for _, dev := range devices {
			fabric.Partition(client, dev, true)
		}
		eventually(t, "calls go over TCP when RDMA has died", all(core.TCP))
		l.more(100)
		for _, dev := range devices {
			fabric.Partition(client, dev, false)
		}
		eventually(t, "calls return to RDMA", all(core.RDMA))
		l.more(100)
	}
	l.stop()
	if got, want := l.sum(), float64(l.pushes.Load()); got != want {
		t.Errorf("the rows hold %v pushes of %v", got, want)
	}
	st := ch.Stats()
	for _, r := range st.Replicas {
		if r.Fallbacks[core.NoDevice] == 0 || r.Returns < 3 || len(r.Fallbacks) < 2 {
			t.Errorf("%+v", r)
		}
	}
	if st.Failed != 0 {
		t.Errorf("%+v", st.CallStats)
	}
}
