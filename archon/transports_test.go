package archon_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testmodel"
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
	return n
}

// connect serves s and gives a client of it.
func (tr transport) connect(t testing.TB, s *archon.Server) *archon.Client {
	t.Helper()
	return archon.DialTo(t, tr.client, archon.Serve(t, s, tr.server), archon.ClientConfig{})
}

// TestServiceNames: every transport takes and refuses the same names.
func TestServiceNames(t *testing.T) {
	eachTransport(t, func(t *testing.T, tr transport) {
		l, err := tr.server.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for n, ok := range map[int]bool{0: false, 1: true, 200: true, 201: false, 256: false} {
			s, err := tr.client.Dial(context.Background(), l.Addr().String(), strings.Repeat("x", n))
			if (err == nil) != ok {
				t.Errorf("service name of %d bytes: %v", n, err)
			}
			if err == nil {
				s.OnMessage(func(b []byte, err error) { s.Free(b) })
				s.Close()
			}
		}
	})
}

// TestNoNode: a BE without its node is an error, not a panic.
func TestNoNode(t *testing.T) {
	if _, err := (archon.BE{}).Listen("127.0.0.1:0"); err == nil {
		t.Error("listened")
	}
	if _, err := (archon.BE{}).Dial(context.Background(), "127.0.0.1:1", "x"); err == nil {
		t.Error("dialed")
	}
}
