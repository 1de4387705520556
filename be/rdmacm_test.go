package be_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm/stream"
	"github.com/byteexpress/byteexpress/verbs"
)

// newCMPair makes two nodes on the device that the tests may use, which find each other
// by the connection manager: there is no TCP. Closing the contexts fails if a line is
// left.
func newCMPair(t *testing.T) (p *pair, addr netip.Addr) {
	t.Helper()
	name := testdev.Name(t)
	p = &pair{}
	if strings.HasPrefix(name, "sim:") {
		t.Skipf("%s is no device of a kernel, whose connection manager this tests", name)
	}
	for i := range p.nodes {
		dev, err := provider.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := dev.Open()
		if err != nil {
			t.Fatal(err)
		}
		lines, err := stream.New(ctx, stream.Config{})
		if err != nil {
			t.Fatal(err)
		}
		p.nodes[i] = nodeIn(t, ctx, be.Config{Bootstrap: lines})
		gids, err := ctx.GIDs(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range verbs.RankGIDs(gids)[:1] {
			addr = g.GID.Addr()
		}
	}
	var err error
	if p.listener, err = p.nodes[0].Listen(netip.AddrPortFrom(addr, 0).String()); err != nil {
		t.Fatal(err)
	}
	return p, addr
}

// Engines come up by the connection manager, many sockets share one, and the end of a
// peer is told.
func TestDeviceRDMACM(t *testing.T) {
	p, addr := newCMPair(t)
	ctx := limit(t)
	if p.listener.Addr().Network() != "rdma_cm" || !strings.HasPrefix(p.listener.Addr().String(), addr.String()) {
		t.Errorf("listener at %v", p.listener.Addr())
	}
	for i, size := range []int{0, 1, 4096, 8193, 65537, 1<<20 + 1} {
		server, client := p.connect(t, "sizes")
		exchange(t, client, server, size, byte(i))
	}
	if st := p.nodes[1].Stats(); st.Engines != 1 || st.RNR != 0 || st.Failures != 0 {
		t.Errorf("%d engines, stats %+v", st.Engines, st.Stats)
	}
	server, client := p.connect(t, "last")
	if err := p.nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Recv(ctx); !errors.Is(err, be.ErrPeerClosed) && !errors.Is(err, be.ErrPeerLost) {
		t.Errorf("receive from a peer that left: %v", err)
	}
	client.Close()
	eventually(t, "no engine left", func() bool { return p.nodes[0].Stats().Engines == 0 })
}

// What can go wrong on the way names the step, the peer and the reason.
func TestDeviceRDMACMRefused(t *testing.T) {
	p, addr := newCMPair(t)
	ctx := limit(t)
	var step *be.StepError
	_, err := p.nodes[1].Dial(ctx, netip.AddrPortFrom(addr, 1).String(), "x")
	if !errors.Is(err, rdmacm.ReasonInvalidServiceID) || !errors.As(err, &step) || step.Step != "connect" {
		t.Errorf("nobody listens: %v", err)
	}
	// TEST-NET-1 (RFC 5737) is of nobody.
	_, err = p.nodes[1].Dial(ctx, "192.0.2.1:7174", "x")
	if !errors.As(err, &step) || step.Step != "connect" || !strings.Contains(err.Error(), "resolve address 192.0.2.1:7174") {
		t.Errorf("no way: %v", err)
	}
	if _, err := p.nodes[1].Listen("192.0.2.1:7174"); err == nil || !strings.Contains(err.Error(), "no interface of this host") {
		t.Errorf("listen: %v", err)
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.nodes[1].Dial(dead, p.listener.Addr().String(), "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	server, client := p.connect(t, "still works")
	server.Close()
	client.Close()
}

// Many dials at once, in both directions, make one engine; then everything goes at once.
func TestDeviceRDMACMCrossing(t *testing.T) {
	p, addr := newCMPair(t)
	ctx := limit(t)
	back, err := p.nodes[1].Listen(netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for i := range 16 {
		go func() {
			n, l := p.nodes[1], p.listener
			if i%2 == 0 {
				n, l = p.nodes[0], back
			}
			_, err := n.Dial(ctx, l.Addr().String(), "x")
			errs <- err
		}()
	}
	for range 16 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, n := range p.nodes { // the engine that gave way may still drain
		eventually(t, "one engine", func() bool { return n.Stats().Engines == 1 })
	}
}
