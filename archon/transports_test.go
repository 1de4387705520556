package archon_test

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// transport is one end of a transport of a test.
type transport struct {
	name   string
	server archon.Transport
	client archon.Transport
}

// eachTransport runs a test over TCP and over ByteExpress on the simulator.
func eachTransport(t *testing.T, f func(t *testing.T, tr transport)) {
	t.Run("tcp", func(t *testing.T) { f(t, transport{"tcp", archon.TCP{}, archon.TCP{}}) })
	t.Run("be", func(t *testing.T) { f(t, simTransport(t)) })
}

// simTransport gives two nodes on a fabric of their own, which are closed when the
// test ends.
func simTransport(t testing.TB) transport {
	fabric := sim.NewFabric(sim.Config{})
	return transport{"be", archon.BE{simNode(t, fabric, "sim:server")}, archon.BE{simNode(t, fabric, "sim:client")}}
}

func simNode(t testing.TB, f *sim.Fabric, name string) *be.Node {
	t.Helper()
	dev, err := f.NewDevice(name, sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	rdma, err := dev.Open()
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
	return n
}

// connect serves s and gives a client of it.
func (tr transport) connect(t testing.TB, s *archon.Server) *archon.Client {
	t.Helper()
	return archon.DialTo(t, tr.client, archon.Serve(t, s, tr.server), archon.ClientConfig{})
}
