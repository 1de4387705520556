package archon_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

func TestLostNodeEndsCallsWithTheCause(t *testing.T) {
	fabric := sim.NewFabric(sim.Config{})
	serverNode, clientNode := simNode(t, fabric, "sim:server"), simNode(t, fabric, "sim:client")
	block, blocked := archon.NewMethod("test.Block"), make(chan struct{})
	s := archon.NewServer(archon.ServerConfig{})
	err := s.Handle(block, func(call *archon.ServerCall) error {
		blocked <- struct{}{}
		<-call.Context().Done()
		return call.Context().Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	c := archon.DialTo(t, archon.BE{Node: clientNode}, archon.Serve(t, s, archon.BE{Node: serverNode}), archon.ClientConfig{})
	errs := make(chan error, 3)
	for range cap(errs) {
		req, err := c.Alloc(10)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Go(&archon.Call{Method: block, Request: req}, func(call *archon.Call) { errs <- call.Err }); err != nil {
			t.Fatal(err)
		}
		<-blocked
	}
	serverNode.Close()
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, archon.Unavailable) || !errors.Is(err, be.ErrPeerClosed) && !errors.Is(err, be.ErrPeerLost) {
			t.Errorf("call: %v", err)
		}
	}
	<-c.Done()
}

// TestHostileMessages sends messages over ByteExpress that no client or server of ours
// does; each ends its socket alone.
func TestHostileMessages(t *testing.T) {
	tr := simTransport(t)
	s := archon.EchoServer(t, archon.ServerConfig{})
	addr := archon.Serve(t, s, tr.server)
	good := archon.DialTo(t, tr.client, addr, archon.ClientConfig{})
	for _, message := range [][]byte{{}, {1}, bytes.Repeat([]byte{0xff}, 40), bytes.Repeat([]byte{1}, 100_000)} {
		sock, err := tr.client.Dial(context.Background(), addr, "hostile")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		sock.OnMessage(func(b []byte, err error) {
			if err != nil {
				close(ended)
				return
			}
			sock.Free(b)
		})
		b, err := sock.Alloc(len(message))
		if err != nil {
			t.Fatal(err)
		}
		copy(b, message)
		err = sock.Post(b, func(err error) {
			if err == nil {
				sock.Free(b)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		<-ended
		sock.Close()
		if _, err := archon.CallOn(t, context.Background(), good, archon.EchoMethod, []byte("still there?")); err != nil {
			t.Fatalf("another socket's call: %v", err)
		}
	}
}

func TestListenersEnd(t *testing.T) { eachTransport(t, testListenersEnd) }

func testListenersEnd(t *testing.T, tr transport) {
	l, err := tr.server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("accept with a deadline: %v", err)
	}
	ended := make(chan error)
	go func() {
		_, err := l.Accept(context.Background())
		ended <- err
	}()
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept at the close: %v", err)
	}
	if _, err := archon.Dial(context.Background(), tr.client, l.Addr().String(), "test", archon.ClientConfig{}); !errors.Is(err, archon.Unavailable) {
		t.Errorf("dial of a closed listener: %v", err)
	}
}
