package channel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/sim"
)

// eachPath runs f with a channel to three replicas over TCP, and over RDMA.
func eachPath(t testing.TB, f func(path core.Path, ch *channel.Channel)) {
	var list []channel.Endpoint
	fabric := sim.NewFabric(sim.Config{})
	_, open := openSim(t, fabric, "sim:server")
	dev := newDevice(t, open)
	for _, name := range []string{"a", "b", "c"} {
		v := startServer(t, name, nil)
		list = append(list, channel.Endpoint{Name: name, TCP: v.tcp, RDMA: v.listen(dev, "127.0.0.1:0")})
	}
	_, open = openSim(t, fabric, "sim:client")
	for path, rdma := range map[core.Path]archon.Transport{core.TCP: nil, core.RDMA: newDevice(t, open)} {
		// No pings while allocations are counted.
		ch := newChannel(t, channel.Config{Resolver: channel.Static(list...), RDMA: rdma, Recovery: channel.Recovery{PingInterval: time.Hour, PingTimeout: time.Hour}})
		eventually(t, "all replicas are reached", func() bool {
			n := 0
			for _, r := range ch.Stats().Replicas {
				if r.Path == path {
					n++
				}
			}
			return n == len(list)
		})
		f(path, ch)
	}
}

// TestCallsDoNotAllocate runs calls in this process, so both sides count.
func TestCallsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	eachPath(t, func(path core.Path, ch *channel.Channel) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		inv := archon.Invocation{Method: echo, Request: archon.Bytes(make([]byte, 1000))}
		once := func() {
			resp, err := ch.Do(ctx, &inv)
			if err != nil {
				t.Fatal(err)
			}
			resp.Release()
		}
		for range 300 {
			once()
		}
		if n := testing.AllocsPerRun(2000, once); n != 0 {
			t.Errorf("%v: %v allocations a call", path, n)
		}
	})
}

// The control: what the test above counts, it does count.
func TestAllocationsAreCounted(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	eachPath(t, func(path core.Path, ch *channel.Channel) {
		n := testing.AllocsPerRun(100, func() {
			if _, err := ask(context.Background(), ch, who, ""); err != nil {
				t.Fatal(err)
			}
		})
		if n == 0 {
			t.Error("a copy of the answer counts as no allocation")
		}
	})
}

// BenchmarkCall measures what a channel adds to the calls of a client.
func BenchmarkCall(b *testing.B) {
	fabric := sim.NewFabric(sim.Config{})
	_, openServer := openSim(b, fabric, "sim:server")
	_, openClient := openSim(b, fabric, "sim:client")
	server, client := newDevice(b, openServer), newDevice(b, openClient)
	v := startServer(b, "a", nil)
	e := channel.Endpoint{Name: "a", TCP: v.tcp, RDMA: v.listen(server, "127.0.0.1:0")}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, path := range []core.Path{core.TCP, core.RDMA} {
		cfg, addr, tr := channel.Config{Resolver: channel.Static(e)}, e.TCP, archon.Transport(archon.TCP{})
		if path == core.RDMA {
			cfg.RDMA, addr, tr = client, e.RDMA, client
		}
		c, err := archon.Dial(ctx, tr, addr, "test", archon.ClientConfig{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close(); <-c.Done() })
		for name, to := range map[string]archon.Invoker{"client": c, "channel": newChannel(b, cfg)} {
			b.Run(fmt.Sprintf("path=%v/by=%s", path, name), func(b *testing.B) {
				b.ReportAllocs()
				inv := archon.Invocation{Method: echo, Request: archon.Bytes(make([]byte, 64))}
				for b.Loop() {
					resp, err := to.Do(ctx, &inv)
					if err != nil {
						b.Fatal(err)
					}
					resp.Release()
				}
			})
		}
	}
}
