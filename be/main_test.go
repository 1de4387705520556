package be_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checked reports whether the race detector or the allocator's checks are on: both allocate
// memory of Go's.
func checked() bool { return raceEnabled || os.Getenv("BEMALLOC_DEBUG") != "" }

// pair is two nodes on devices of one fabric.
type pair struct {
	fabric   *sim.Fabric
	devs     [2]*sim.Device
	nodes    [2]*be.Node
	listener *be.Listener
}

// newPair makes two nodes, the first with a listener. They are closed, and
// everything is checked to be given back, when the test ends.
func newPair(t testing.TB, cfg be.Config) *pair {
	return newPairOn(t, sim.Config{}, cfg, cfg)
}

func newPairOn(t testing.TB, fc sim.Config, a, b be.Config) *pair {
	t.Helper()
	p := &pair{fabric: sim.NewFabric(fc)}
	for i, cfg := range []be.Config{a, b} {
		p.devs[i], p.nodes[i] = newNode(t, p.fabric, fmt.Sprintf("sim%d", i), cfg)
	}
	var err error
	if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return p
}

func newNode(t testing.TB, f *sim.Fabric, name string, cfg be.Config) (*sim.Device, *be.Node) {
	t.Helper()
	dev, err := f.NewDevice(name, sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return dev, nodeOn(t, testmodel.On(t, dev), cfg)
}

// nodeOn makes a node on a device of any kind.
func nodeOn(t testing.TB, dev verbs.Device, cfg be.Config) *be.Node {
	t.Helper()
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	return nodeIn(t, ctx, cfg)
}

// nodeIn makes a node in a context of its own; both are closed when the test ends.
func nodeIn(t testing.TB, ctx verbs.Context, cfg be.Config) *be.Node {
	t.Helper()
	n, err := be.NewNode(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close node: %v", err)
		}
		if m := n.Stats().Memory; m.DoubleFrees != 0 {
			t.Errorf("%d double frees: from then on buffers may have two owners", m.DoubleFrees)
		}
		if err := ctx.Close(); err != nil {
			t.Errorf("close context: %v", err)
		}
	})
	return n
}

// simDefaults is a fabric without faults.
var simDefaults sim.Config

// limit is a context for anything that must not hang, even on an emulated machine.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connect gives both ends of a new socket.
func (p *pair) connect(t testing.TB, service string) (server, client *be.Socket) {
	t.Helper()
	return p.connectBy(t, p.listener.Addr().String(), service)
}

// connectBy is connect by the address of a proxy.
func (p *pair) connectBy(t testing.TB, addr, service string) (server, client *be.Socket) {
	t.Helper()
	ctx := limit(t)
	client, err := p.nodes[1].Dial(ctx, addr, service)
	if err != nil {
		t.Fatal(err)
	}
	if server, err = p.listener.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	if server.Service() != service {
		t.Errorf("service is %q, want %q", server.Service(), service)
	}
	return server, client
}

// alloc gives a buffer with a pattern that depends on seed.
func alloc(t testing.TB, n *be.Node, size int, seed byte) []byte {
	t.Helper()
	b, err := n.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	fill(b, seed)
	return b
}

// postFreed posts a buffer of the node's, which is freed when it was sent. An error, now or
// later, fails the test. Any goroutine may call it.
func postFreed(t testing.TB, n *be.Node, s *be.Socket, b []byte) bool {
	t.Helper()
	err := s.Post(b, func(err error) {
		if err != nil {
			t.Errorf("post: %v", err)
			return
		}
		n.Free(b)
	})
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func fill(b []byte, seed byte) {
	x := uint32(seed)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

func check(t testing.TB, b []byte, size int, seed byte) {
	t.Helper()
	if len(b) != size {
		t.Errorf("message of %d bytes, want %d", len(b), size)
		return
	}
	x := uint32(seed)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		if b[i] != byte(x>>24) {
			t.Errorf("message of %d bytes differs at %d", size, i)
			return
		}
	}
}

// exchange sends a message of this size to and fro and checks its bytes.
func exchange(t testing.TB, a, b *be.Socket, size int, seed byte) {
	t.Helper()
	ctx := limit(t)
	for _, way := range [][2]*be.Socket{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		m := alloc(t, from.Node(), size, seed)
		if err := from.Send(ctx, m); err != nil {
			t.Fatalf("send %d bytes: %v", size, err)
		}
		from.Node().Free(m)
		got, err := to.Recv(ctx)
		if err != nil {
			t.Fatalf("receive %d bytes: %v", size, err)
		}
		check(t, got, size, seed)
		to.Node().Free(got)
	}
}

// eventually waits until a condition holds that only needs others to go on.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for ctx := limit(t); !f(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// expired is a context that has ended.
func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
