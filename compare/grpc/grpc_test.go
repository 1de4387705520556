package grpc

import (
	"context"
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/be/netconn"
	"github.com/byteexpress/byteexpress/sim"
)

// echo is a service with one call, which answers with the request.
var echo = grpc.ServiceDesc{
	ServiceName: "echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		b := new([]byte)
		return b, dec(b)
	}}},
}

// serve starts the service on a listener, and gives a client of it.
func serve(t testing.TB, l net.Listener, dial func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	t.Helper()
	s := grpc.NewServer(grpc.ForceServerCodecV2(Raw{}))
	s.RegisterService(&echo, nil)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dial), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(Raw{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return c
}

// newNodes makes two nodes on simulated devices.
func newNodes(t testing.TB) (nodes [2]*be.Node) {
	t.Helper()
	f := sim.NewFabric(sim.Config{})
	for i := range nodes {
		dev, err := f.NewDevice(fmt.Sprint("sim", i), sim.DeviceConfig{})
		if err != nil {
			t.Fatal(err)
		}
		rdma, err := dev.Open()
		if err != nil {
			t.Fatal(err)
		}
		if nodes[i], err = be.NewNode(rdma, be.Config{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := nodes[i].Close(); err != nil {
				t.Error(err)
			}
			rdma.Close()
		})
	}
	return nodes
}

func overBE(t testing.TB) *grpc.ClientConn {
	nodes := newNodes(t)
	l, err := netconn.Listen(nodes[0], "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := netconn.Dialer{Node: nodes[1], Service: "grpc"}
	return serve(t, l, func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "be", addr) })
}

func overTCP(t testing.TB) *grpc.ClientConn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, func(ctx context.Context, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
}

func call(ctx context.Context, c *grpc.ClientConn, out []byte) ([]byte, error) {
	var in []byte
	err := c.Invoke(ctx, "/echo/Echo", &out, &in)
	return in, err
}

// TestCalls makes calls of many sizes at the same time.
func TestCalls(t *testing.T) {
	c := overBE(t)
	t.Run("calls", func(t *testing.T) {
		for _, size := range []int{0, 1, 1000, 100000, 3 << 20} {
			t.Run(fmt.Sprint(size), func(t *testing.T) {
				t.Parallel()
				out := make([]byte, size)
				for i := range out {
					out[i] = byte(i >> 8 * i)
				}
				for range 20 {
					in, err := call(t.Context(), c, out)
					if err != nil {
						t.Fatal(err)
					}
					if string(in) != string(out) {
						t.Fatal("the answer differs")
					}
				}
			})
		}
	})
}

// BenchmarkEcho is one call after another, request and answer of the same size.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
		for _, over := range []struct {
			name string
			dial func(testing.TB) *grpc.ClientConn
		}{{"grpc-tcp", overTCP}, {"grpc-be", overBE}} {
			b.Run(fmt.Sprintf("size=%d/over=%s", size, over.name), func(b *testing.B) {
				c := over.dial(b)
				out := make([]byte, size)
				b.SetBytes(2 * int64(size))
				for b.Loop() {
					if _, err := call(b.Context(), c, out); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("size=%d/over=messages", size), func(b *testing.B) { messages(b, size) })
	}
}

// messages is the same exchange by messages of be, without gRPC.
func messages(b *testing.B, size int) {
	nodes := newNodes(b)
	l, err := nodes[0].Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	client, err := nodes[1].Dial(b.Context(), l.Addr().String(), "echo")
	if err != nil {
		b.Fatal(err)
	}
	server, err := l.Accept(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	server.OnMessage(func(m []byte, err error) {
		if err == nil && server.Post(m, func(err error) {
			if err == nil {
				nodes[0].Free(m)
			}
		}) != nil {
			nodes[0].Free(m)
		}
	})
	b.SetBytes(2 * int64(size))
	for b.Loop() {
		m, err := nodes[1].Alloc(size)
		if err != nil {
			b.Fatal(err)
		}
		if err := client.Send(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		nodes[1].Free(m)
		if m, err = client.Recv(b.Context()); err != nil {
			b.Fatal(err)
		}
		nodes[1].Free(m)
	}
}
