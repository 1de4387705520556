package be_test

import (
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// together posts n messages of size bytes on each socket at once: the worker is held
// meanwhile. It gives what the nodes counted.
func together(t *testing.T, p *pair, sockets, n, size int) (from, to be.Stats) {
	t.Helper()
	_, gate := p.connect(t, "gate")
	var servers, clients []*be.Socket
	for range sockets {
		server, client := p.connect(t, "x")
		servers, clients = append(servers, server), append(clients, client)
	}
	open, held := make(chan struct{}), make(chan struct{})
	first := alloc(t, p.nodes[1], 1, 0)
	if err := gate.Post(first, func(error) { close(held); <-open; p.nodes[1].Free(first) }); err != nil {
		t.Fatal(err)
	}
	<-held
	for i, s := range clients {
		for j := range n {
			b := alloc(t, p.nodes[1], size, byte(i+j))
			if !postFreed(t, p.nodes[1], s, b) {
				t.FailNow()
			}
		}
	}
	close(open)
	for i, s := range servers {
		for j := range n {
			b, err := s.Recv(limit(t))
			if err != nil {
				t.Fatal(err)
			}
			check(t, b, size, byte(i+j))
			p.nodes[0].Free(b)
		}
	}
	return p.nodes[1].Stats(), p.nodes[0].Stats()
}

// TestPack: short messages that wait together go together, if both nodes agree, they are
// short enough for the sender and the device has the segments; else the wire is that of
// before, and nothing is copied.
func TestPack(t *testing.T) {
	for _, tt := range []struct {
		from, to, sge, size int
		packed              bool
	}{
		{0, 0, 32, 64, true}, {0, 0, 32, 1024, true}, {0, 0, 32, 1025, false}, {256, 0, 32, 257, false}, {4000, 0, 32, 4000, true}, {0, 0, 3, 64, true}, {0, 0, 2, 64, false},
		{-1, 0, 32, 64, false}, {0, -1, 32, 64, false}, {-1, -1, 32, 64, false},
	} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			p := &pair{fabric: sim.NewFabric(sim.Config{})}
			for i, cfg := range []be.Config{{PackBytes: tt.to}, {PackBytes: tt.from}} {
				dev, err := p.fabric.NewDevice(fmt.Sprint("sim", i), sim.DeviceConfig{Limits: verbs.DeviceAttr{MaxSGE: tt.sge}})
				if err != nil {
					t.Fatal(err)
				}
				p.nodes[i] = nodeOn(t, dev, cfg)
			}
			var err error
			if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			from, to := together(t, p, 5, 40, tt.size)
			if (from.Packed > 0) != tt.packed || (to.Copies > 0) != tt.packed || from.Copies+to.Packed != 0 {
				t.Errorf("%d packed, %d copied at the receiver; packed %v wanted", from.Packed, to.Copies, tt.packed)
			}
			if most := uint64(min(tt.sge, 17)-2) * (from.Eager - from.Packed); from.Packed > most {
				t.Errorf("%d messages in %d requests of %d segments", from.Eager, from.Eager-from.Packed, tt.sge)
			}
			if from.Failures+to.Failures+from.RNR+to.ProtocolErrors != 0 {
				t.Errorf("stats %+v and %+v", from.Stats, to.Stats)
			}
		})
	}
}

// TestPackAllocatesNothing: short messages that go together cost no memory of Go's.
func TestPackAllocatesNothing(t *testing.T) {
	if checked() {
		t.Skip("the race detector and BEMALLOC_DEBUG allocate")
	}
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "allocs")
	b := alloc(t, p.nodes[1], 64, 1)
	defer p.nodes[1].Free(b)
	const n = 64
	ended := make(chan error, n)
	done := func(err error) { ended <- err }
	ctx := limit(t)
	op := func() {
		for range n {
			if err := client.Post(b, done); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			m, err := server.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			p.nodes[0].Free(m)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 100 {
		op()
	}
	packed := p.nodes[1].Stats().Packed
	if n := testing.AllocsPerRun(100, op); n >= 1 {
		t.Errorf("%v allocations for 64 messages", n)
	}
	if p.nodes[1].Stats().Packed == packed {
		t.Error("nothing was packed: the test shows nothing")
	}
}
