package ps_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/ps"
	"github.com/byteexpress/byteexpress/sim"
)

// transport is how the clients of a test reach its servers, each on a host of its
// own.
type transport struct {
	name   string
	server func(testing.TB) archon.Transport
	client archon.Transport
}

var tcp = transport{"tcp", func(testing.TB) archon.Transport { return archon.TCP{} }, archon.TCP{}}

// eachTransport runs a test over TCP and over ByteExpress on the simulator.
func eachTransport(t *testing.T, f func(t *testing.T, tr transport)) {
	t.Run("tcp", func(t *testing.T) { f(t, tcp) })
	t.Run("be", func(t *testing.T) { f(t, simTransport(t)) })
}

// simTransport gives nodes on a fabric of their own, which are closed when the test
// ends.
func simTransport(t testing.TB) transport {
	fabric, servers := sim.NewFabric(sim.Config{}), 0
	server := func(t testing.TB) archon.Transport {
		servers++
		return simNode(t, fabric, fmt.Sprintf("sim:server%d", servers))
	}
	return transport{"be", server, simNode(t, fabric, "sim:client")}
}

func simNode(t testing.TB, f *sim.Fabric, name string) archon.BE {
	t.Helper()
	dev, err := f.NewDevice(name, sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return nodeOn(t, dev)
}

func nodeOn(t testing.TB, dev *sim.Device) archon.BE {
	t.Helper()
	rdma, err := testmodel.On(t, dev).Open()
	if err != nil {
		t.Fatal(err)
	}
	n, err := be.NewNode(rdma, be.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), rdma.Close()); err != nil {
			t.Error(err)
		}
	})
	return archon.BE{Node: n}
}

// start serves shards of a table until the test ends, and gives them and a client.
func (tr transport) start(t testing.TB, shards int, cfg ps.Config) ([]*ps.Shard, *ps.Client) {
	t.Helper()
	all, addrs := make([]*ps.Shard, shards), make([]string, shards)
	for i := range all {
		cfg.Shard, cfg.Shards = i, shards
		all[i], addrs[i] = tr.serve(t, cfg)
	}
	c, err := ps.Dial(context.Background(), tr.client, cfg.Dim, addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return all, c
}

func (tr transport) serve(t testing.TB, cfg ps.Config) (*ps.Shard, string) {
	t.Helper()
	host := tr.server(t)
	if on, ok := host.(archon.BE); ok {
		cfg.Memory = on.Node
	}
	s, err := ps.NewShard(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	srv := archon.NewServer(archon.ServerConfig{})
	if err := s.Register(srv); err != nil {
		t.Fatal(err)
	}
	l, err := host.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		srv.Close()
		l.Close()
		<-served
	})
	return s, l.Addr().String()
}

func keyRange(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	return keys
}
