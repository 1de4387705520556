package archon_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// sockets gives both ends of a connection.
func (tr transport) sockets(t *testing.T) (client, server archon.Socket) {
	t.Helper()
	l, err := tr.server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	accepted := make(chan archon.Socket, 1)
	go func() {
		s, err := l.Accept(ctx)
		if err != nil {
			t.Error(err)
		}
		accepted <- s
	}()
	if client, err = tr.client.Dial(ctx, l.Addr().String(), "test"); err != nil {
		t.Fatal(err)
	}
	return client, <-accepted
}

// TestSocketKeepsOrder posts messages of all lengths, in every way, and closes at once
// over ByteExpress, which sends what was posted.
func TestSocketKeepsOrder(t *testing.T) { eachTransport(t, testSocketKeepsOrder) }

func testSocketKeepsOrder(t *testing.T, tr transport) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const total = 5000
	client, server := tr.sockets(t)
	over := make(chan int, 2)
	next := 0
	server.OnMessage(func(b []byte, err error) {
		if err != nil {
			over <- next
			return
		}
		if n := int(binary.LittleEndian.Uint32(b[1:])); n != next {
			t.Errorf("message %d arrived as number %d", n, next)
		}
		next++
		if next == total && tr.name == "tcp" {
			server.Close()
		}
		server.Free(b)
	})
	client.OnMessage(func(_ []byte, err error) {
		if err != nil {
			over <- total
		}
	})
	sent := make(chan error, total)
	for i := range total {
		size := 5 + rng.IntN(200)
		if rng.IntN(10) == 0 {
			size = 1000 + rng.IntN(20_000)
		}
		b, err := client.Alloc(size)
		if err != nil {
			t.Fatal(err)
		}
		b[0] = 2 // as a header does
		binary.LittleEndian.PutUint32(b[1:], uint32(i))
		if short, ok := client.(archon.ShortPoster); ok && rng.IntN(2) == 0 && short.PostShort(b) == nil {
			client.Free(b)
			sent <- nil
			continue
		}
		if err := client.Post(b, func(err error) {
			if err == nil {
				client.Free(b)
			}
			sent <- err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if tr.name == "be" {
		client.Close()
	}
	for range total {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if n := <-over; n != total {
			t.Errorf("%d of %d messages arrived", n, total)
		}
	}
	client.Close()
	server.Close()
}

// TestShortestMaxMessage: nodes that take short messages only.
func TestShortestMaxMessage(t *testing.T) {
	fabric := sim.NewFabric(sim.Config{})
	for _, limit := range []int{256, 1000, 1032, 1033, 8191, 8192, 8193} {
		tr := transport{"be", archon.BE{limitedNode(t, fabric, "server", limit)}, archon.BE{limitedNode(t, fabric, "client", limit)}}
		c := tr.connect(t, archon.EchoServer(t, archon.ServerConfig{}))
		most := 0
		for n := range limit { // the longest payload that is taken must arrive
			b, err := c.Alloc(n)
			if err != nil {
				break
			}
			c.Free(b)
			most = n
		}
		if lost := limit - archon.HeaderSize - most; lost < 0 || lost > 11 {
			t.Errorf("messages up to %d bytes: payloads up to %d", limit, most)
		}
		for _, n := range []int{0, most / 2, most - 1, most} {
			if got, err := archon.CallOn(t, context.Background(), c, archon.EchoMethod, make([]byte, n)); err != nil || len(got) != n {
				t.Errorf("messages up to %d bytes: payload of %d: %d bytes, %v", limit, n, len(got), err)
			}
		}
	}
}

func limitedNode(t *testing.T, f *sim.Fabric, name string, limit int) *be.Node {
	t.Helper()
	dev, err := f.NewDevice(fmt.Sprint("sim:", name, limit), sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	rdma, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	n, err := be.NewNode(rdma, be.Config{MaxMessage: limit})
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

// TestHostileBundles: a peer that sends what is no bundle loses its connection alone.
func TestHostileBundles(t *testing.T) {
	tr := simTransport(t)
	addr := archon.Serve(t, archon.EchoServer(t, archon.ServerConfig{}), tr.server)
	good := archon.DialTo(t, tr.client, addr, archon.ClientConfig{})
	node := tr.client.(archon.BE).Node
	for _, m := range [][]byte{
		{0xb1}, {0xb1, 0, 0, 0}, {0xb1, 0, 1, 0, 9, 0, 0, 0}, {0xb1, 0, 2, 0, 0, 0, 0, 0}, {0xb1, 0, 1, 0, 1, 0, 0, 0, 'x', 0, 0, 0}, {2, 1},
	} {
		s, err := node.Dial(context.Background(), addr, "x")
		if err != nil {
			t.Fatal(err)
		}
		b, err := node.Alloc(len(m))
		if err != nil {
			t.Fatal(err)
		}
		copy(b, m)
		if err := s.Send(context.Background(), b); err == nil {
			node.Free(b)
		}
		select {
		case <-s.Done():
		case <-time.After(time.Minute):
			t.Errorf("% x: the server did not hang up", m)
		}
		s.Close()
		if _, err := archon.CallOn(t, context.Background(), good, archon.EchoMethod, []byte("still there?")); err != nil {
			t.Fatalf("% x: another client's call: %v", m, err)
		}
	}
}

// TestPingLeaves: who waits for an answer is told that the ping is on its way.
func TestPingLeaves(t *testing.T) { eachTransport(t, testPingLeaves) }

func testPingLeaves(t *testing.T, tr transport) {
	client, server := tr.sockets(t)
	c := archon.NewClient(client, archon.ClientConfig{})
	over := make(chan error, 1)
	var p archon.Ping
	if err := c.GoPing(&p, func(p *archon.Ping) { over <- p.Err }); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); !p.Left(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Error("the ping has not left")
			break
		}
	}
	c.Close()
	if err := <-over; !errors.Is(err, archon.Unavailable) {
		t.Errorf("the ping ended with %v, though nobody answered", err)
	}
	<-c.Done()
	server.Close()
}

// TestShutdownOverTransports: answers that are on their way when the last call ends
// arrive.
func TestShutdownOverTransports(t *testing.T) { eachTransport(t, testShutdownOverTransports) }

func testShutdownOverTransports(t *testing.T, tr transport) {
	s := archon.EchoServer(t, archon.ServerConfig{})
	c := tr.connect(t, s)
	if _, err := archon.CallOn(t, context.Background(), c, archon.EchoMethod, nil); err != nil { // the server has the connection
		t.Fatal(err)
	}
	const calls = 1000
	ended := make(chan error, calls)
	for range calls {
		req, err := c.Alloc(64)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Go(&archon.Call{Method: archon.WorkerMethod, Request: req}, func(call *archon.Call) {
			call.Response.Release()
			ended <- call.Err
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	for range calls {
		if err := <-ended; err != nil && !archon.IsRetryable(err) {
			t.Fatalf("a call during shutdown: %v", err)
		}
	}
	if _, err := archon.CallOn(t, ctx, c, archon.EchoMethod, nil); !errors.Is(err, archon.Unavailable) {
		t.Errorf("afterwards: %v", err)
	}
}
