package archon

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

var (
	echoMethod   = NewMethod("test.Echo")
	workerMethod = NewMethod("test.EchoOnWorker")
)

// echo answers with the request's bytes.
func echo(call *ServerCall) error {
	out, err := call.Alloc(len(call.Payload()))
	if err != nil {
		return err
	}
	copy(out, call.Payload())
	return nil
}

// transport is one end of a transport of a test.
type transport struct {
	name   string
	server Transport
	client Transport
}

// eachTransport runs a test over TCP and over ByteExpress on the simulator.
func eachTransport(t *testing.T, f func(t *testing.T, tr transport)) {
	t.Run("tcp", func(t *testing.T) { f(t, transport{"tcp", TCP{}, TCP{}}) })
	t.Run("be", func(t *testing.T) { f(t, simTransport(t)) })
}

// simTransport gives two nodes on a fabric of their own, which are closed when the
// test ends.
func simTransport(t testing.TB) transport {
	fabric := sim.NewFabric(sim.Config{})
	return transport{"be", BE{simNode(t, fabric, "sim:server")}, BE{simNode(t, fabric, "sim:client")}}
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

// serve serves s on a loopback port until the test ends, and gives its address.
func serve(t testing.TB, s *Server, tr Transport) string {
	t.Helper()
	l, err := tr.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		s.Close()
		l.Close()
		if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

// dial gives a client that is closed when the test ends.
func dial(t testing.TB, tr Transport, addr string, cfg ClientConfig) *Client {
	t.Helper()
	c, err := Dial(context.Background(), tr, addr, "test", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	return c
}

// connect serves s and gives a client of it.
func (tr transport) connect(t testing.TB, s *Server) *Client {
	t.Helper()
	return dial(t, tr.client, serve(t, s, tr.server), ClientConfig{})
}

// echoServer answers test.Echo inline and test.EchoOnWorker on workers.
func echoServer(t testing.TB, cfg ServerConfig) *Server {
	t.Helper()
	s := NewServer(cfg)
	if err := errors.Join(s.HandleInline(echoMethod, echo), s.Handle(workerMethod, echo)); err != nil {
		t.Fatal(err)
	}
	return s
}

// call sends payload and gives a copy of the response.
func call(t testing.TB, ctx context.Context, c *Client, m Method, payload []byte) ([]byte, error) {
	t.Helper()
	req, err := c.Alloc(len(payload))
	if err != nil {
		t.Fatal(err)
	}
	copy(req.Payload(), payload)
	resp, err := c.Call(ctx, m, req)
	if err != nil {
		return nil, err
	}
	defer resp.Release()
	return append([]byte(nil), resp.Payload()...), nil
}
