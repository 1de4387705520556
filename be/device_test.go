package be_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/provider"
)

// newDevicePair makes two nodes on the host's RDMA device, each with a context of
// its own.
func newDevicePair(t *testing.T, cfg be.Config) *pair {
	t.Helper()
	dev, err := provider.Open(testdev.Name(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{}
	for i := range p.nodes {
		p.nodes[i] = nodeOn(t, dev, cfg)
	}
	if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDeviceSizes(t *testing.T) {
	bothWays(t, newDevicePair(t, be.Config{}), append(sizes, 8<<20))
}

// Shallow queues, small eager limits and windows: every wait of the protocol occurs.
func TestDeviceTight(t *testing.T) {
	bothWays(t, newDevicePair(t, be.Config{SendDepth: 2, RecvDepth: 4, EagerBytes: 256, FragmentBytes: 1024, WindowBytes: 1024}), sizes)
}

// Sockets that share an engine, all sending at once in both directions.
func TestDeviceManySockets(t *testing.T) {
	const sockets, messages, seed = 8, 40, 1
	t.Logf("seed %d", seed)
	p := newDevicePair(t, be.Config{})
	ctx := limit(t)
	var wg sync.WaitGroup
	for i := range sockets {
		server, client := p.connect(t, fmt.Sprint("socket", i))
		for _, w := range []struct {
			from, to     *be.Socket
			sendN, recvN *be.Node
		}{{client, server, p.nodes[1], p.nodes[0]}, {server, client, p.nodes[0], p.nodes[1]}} {
			wg.Go(func() { sendAll(ctx, t, w.from, w.sendN, messages, seed+uint64(i)) })
			wg.Go(func() { recvAll(ctx, t, w.to, w.recvN, messages, seed+uint64(i)) })
		}
	}
	wg.Wait()
}

// lengths gives the same message sizes to both ends.
func lengths(n int, seed uint64) []int {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]int, n)
	for i := range out {
		out[i] = r.IntN(1 << r.IntN(18))
	}
	return out
}

func sendAll(ctx context.Context, t *testing.T, s *be.Socket, n *be.Node, messages int, seed uint64) {
	for i, size := range lengths(messages, seed) {
		b, err := n.Alloc(size)
		if err != nil {
			t.Error(err)
			return
		}
		fill(b, byte(i))
		if err := s.Send(ctx, b); err != nil {
			t.Errorf("message %d of %d bytes: %v", i, size, err)
			return
		}
		n.Free(b)
	}
}

func recvAll(ctx context.Context, t *testing.T, s *be.Socket, n *be.Node, messages int, seed uint64) {
	for i, size := range lengths(messages, seed) {
		b, err := s.Recv(ctx)
		if err != nil {
			t.Errorf("message %d of %d bytes: %v", i, size, err)
			return
		}
		check(t, b, size, byte(i))
		n.Free(b)
	}
}
