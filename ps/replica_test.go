package ps_test

import (
	"context"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testprocess"
	"github.com/byteexpress/byteexpress/ps"
)

// replicaOf serves one replica of a shard until the test ends or stop is called.
func replicaOf(t testing.TB, tr transport, cfg ps.Config, peers []string, self int, addr string) (s *ps.Shard, r *ps.Replica, at string, stop func()) {
	t.Helper()
	s, err := ps.NewShard(cfg)
	if err != nil {
		t.Fatal(err)
	}
	inside, outside := archon.NewServer(archon.ServerConfig{}), archon.NewServer(archon.ServerConfig{Workers: 32})
	r, err = s.Replicate(inside, ps.ReplicaConfig{Peers: peers, Self: self, Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Register(outside); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 2)
	listen := func(on archon.Transport, srv *archon.Server, addr string) archon.Listener {
		l, err := on.Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() { served <- srv.Serve(context.Background(), l) }()
		return l
	}
	a, b := listen(archon.TCP{}, inside, peers[self]), listen(tr.server(t), outside, addr)
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		r.Close()
		outside.Close()
		inside.Close()
		a.Close()
		b.Close()
		<-served
		<-served
		s.Close()
	}
	t.Cleanup(stop)
	return s, r, b.Addr().String(), stop
}

// TestReplicaReturns: two replicas hold the same; one that begins anew copies the other.
func TestReplicaReturns(t *testing.T) {
	eachTransport(t, func(t *testing.T, tr transport) {
		cfg := ps.Config{Dim: 3, LearningRate: 0.1, Seed: 5, InitialScale: 1, Optimizer: ps.Adagrad}
		peers := []string{testprocess.Addr(t), testprocess.Addr(t)}
		sa, ra, a, _ := replicaOf(t, tr, cfg, peers, 0, "127.0.0.1:0")
		sb, rb, b, stop := replicaOf(t, tr, cfg, peers, 1, "127.0.0.1:0")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, r := range []*ps.Replica{ra, rb} {
			if err := r.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		ch, err := channel.New(channel.Config{Service: "ps", TCP: tr.client, Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: a}, channel.Endpoint{Name: "b", TCP: b})})
		if err != nil {
			t.Fatal(err)
		}
		c, err := ps.NewChannelClient(3, []*channel.Channel{ch})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		push := func(n int) {
			for range n {
				if err := c.Push(ctx, []uint64{1, 2, 1}, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}); err != nil {
					t.Fatal(err)
				}
			}
		}
		same := func(s *ps.Shard, want uint64) {
			t.Helper()
			if va, vb := sa.Version(1), s.Version(1); va != want || vb != want {
				t.Errorf("versions %d and %d, must be %d", va, vb, want)
			}
		}
		push(10)
		same(sb, 20)
		stop()
		push(10)
		sb, rb, _, _ = replicaOf(t, tr, cfg, peers, 1, "127.0.0.1:0")
		if err := rb.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		same(sb, 40)
		push(10)
		same(sb, 60)
		f, err := c.Fetch(ctx, []uint64{1})
		if err != nil {
			t.Fatal(err)
		}
		f.Release()
		if st := ra.Stats(); !st.Serving || st.Joining || st.Pushes != 30 || st.Forgotten != 0 || st.Trouble != nil {
			t.Errorf("%+v", st)
		}
		if st := rb.Stats(); st.Pushes != 30 {
			t.Errorf("%+v", st)
		}
		if raceEnabled {
			return
		}
		keys, gradients := []uint64{1, 2}, make([]float32, 6)
		once := func() {
			if err := c.Push(ctx, keys, gradients); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			once()
		}
		if n := testing.AllocsPerRun(300, once); n != 0 {
			t.Errorf("%v allocations a push", n)
		}
	})
}
