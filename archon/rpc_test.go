package archon

import (
	"context"
	"errors"
	"net"
	"testing"
)

// What tests of this package and of archon_test share.

// Methods of EchoServer.
var (
	EchoMethod   = NewMethod("test.Echo")
	WorkerMethod = NewMethod("test.EchoOnWorker")
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

// Serve serves s on a loopback port until the test ends, and gives its address.
func Serve(t testing.TB, s *Server, tr Transport) string {
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

// DialTo gives a client that is closed when the test ends.
func DialTo(t testing.TB, tr Transport, addr string, cfg ClientConfig) *Client {
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

// EchoServer answers test.Echo inline and test.EchoOnWorker on workers.
func EchoServer(t testing.TB, cfg ServerConfig) *Server {
	t.Helper()
	s := NewServer(cfg)
	if err := errors.Join(s.HandleInline(EchoMethod, echo), s.Handle(WorkerMethod, echo)); err != nil {
		t.Fatal(err)
	}
	return s
}

// CallOn sends payload and gives a copy of the response.
func CallOn(t testing.TB, ctx context.Context, c *Client, m Method, payload []byte) ([]byte, error) {
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
