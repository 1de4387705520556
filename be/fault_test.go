package be_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// proxy passes TCP connections on until it is cut.
type proxy struct {
	addr  string
	mu    sync.Mutex
	conns []*net.TCPConn
}

func newProxy(t *testing.T, to string) *proxy {
	p := &proxy{}
	p.addr = serve(t, func(c net.Conn) {
		d, err := net.Dial("tcp", to)
		if err != nil {
			c.Close()
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, c.(*net.TCPConn), d.(*net.TCPConn))
		p.mu.Unlock()
		var wg sync.WaitGroup
		for _, pair := range [][2]net.Conn{{c, d}, {d, c}} {
			wg.Go(func() {
				io.Copy(pair[0], pair[1])
				pair[0].(*net.TCPConn).CloseWrite()
			})
		}
		wg.Wait()
		c.Close()
		d.Close()
	})
	return p
}

// reset cuts every connection with RST.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.SetLinger(0)
		c.Close()
	}
}

// traffic keeps messages of all kinds going on a socket until it ends, and checks
// that every done function runs once.
type traffic struct {
	posted, done atomic.Int64
	end          error
	wg           sync.WaitGroup
}

func (tr *traffic) start(t *testing.T, n *be.Node, s *be.Socket) {
	tr.wg.Go(func() {
		slots := make(chan struct{}, 64)
		for i := 0; ; i++ {
			slots <- struct{}{}
			b, err := n.Alloc((i % 7) * 30000)
			if err != nil { // the node is closed
				tr.end = err
				return
			}
			tr.posted.Add(1)
			err = s.Post(b, func(err error) {
				tr.done.Add(1)
				if err == nil {
					n.Free(b)
				}
				<-slots
			})
			if err != nil {
				tr.posted.Add(-1)
				n.Free(b)
				tr.end = err
				return
			}
		}
	})
}

// sink takes messages until the socket ends, and gives its error.
func sink(n *be.Node, s *be.Socket) error {
	for {
		b, err := s.Recv(context.Background())
		if err != nil {
			return err
		}
		n.Free(b)
	}
}

// TestFaults (case C17) breaks the connection between two busy nodes in several ways. Each
// time all callers hear, every posted message ends once, memory comes back, and
// where the fault goes away the next dial works.
func TestFaults(t *testing.T) {
	quick := be.Config{AckTimeout: 10, RetryCount: 1, StepTimeout: 2 * time.Second, Linger: 200 * time.Millisecond}
	for _, tt := range []struct {
		desc    string
		breakIt func(p *pair, x *proxy)
		mend    func(p *pair) // nil: it cannot be mended
		is      []error       // the client's error is one of these
	}{
		{"TCP reset", func(p *pair, x *proxy) { x.reset() }, func(p *pair) {}, []error{be.ErrPeerLost}},
		{"partition", func(p *pair, x *proxy) { p.fabric.Partition(p.devs[0], p.devs[1], true) },
			func(p *pair) { p.fabric.Partition(p.devs[0], p.devs[1], false) }, []error{cq.RetryExceededError, be.ErrPeerLost}},
		{"own NIC removed", func(p *pair, x *proxy) { p.devs[1].Remove() }, nil, []error{verbs.ErrDeviceLost}},
		{"peer's NIC removed", func(p *pair, x *proxy) { p.devs[0].Remove() }, nil, []error{cq.RetryExceededError, be.ErrPeerLost}},
		{"port down and up", func(p *pair, x *proxy) { p.devs[1].SetPortState(1, verbs.PortDown) },
			func(p *pair) {
				// Its GID has moved to another index meanwhile (case C17).
				p.devs[1].SetGIDs(1, []nic.GID{{}, {}, {}, {GIDEntry: verbs.GIDEntry{GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 7, 14: 7, 15: 7}, Type: verbs.GIDRoCEv2}}})
				p.devs[1].SetPortState(1, verbs.PortActive)
			}, nil},
		{"peer closes", func(p *pair, x *proxy) { p.nodes[0].Close() }, nil, []error{be.ErrPeerClosed, be.ErrPeerLost}},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			p := newPair(t, quick)
			x := newProxy(t, p.listener.Addr().String())
			server, client := p.connectBy(t, x.addr, "fault")
			var up, down traffic
			up.start(t, p.nodes[1], client)
			down.start(t, p.nodes[0], server)
			errs := make(chan error, 2)
			go func() { errs <- sink(p.nodes[0], server) }()
			go func() { errs <- sink(p.nodes[1], client) }()
			eventually(t, "traffic", func() bool { return up.done.Load() > 200 && down.done.Load() > 200 })
			tt.breakIt(p, x)
			for range 2 {
				if err := <-errs; err == nil {
					t.Error("a receiver heard no error")
				}
			}
			up.wg.Wait()
			down.wg.Wait()
			ok := tt.is == nil
			for _, is := range tt.is {
				ok = ok || errors.Is(client.Err(), is)
			}
			if !ok {
				t.Errorf("client's error: %v", client.Err())
			}
			eventually(t, "every message ends", func() bool {
				return up.posted.Load() == up.done.Load() && down.posted.Load() == down.done.Load()
			})
			client.Close()
			server.Close()
			eventually(t, "no engine left", func() bool { return p.nodes[0].Stats().Engines+p.nodes[1].Stats().Engines == 0 })
			if tt.mend == nil {
				return
			}
			tt.mend(p)
			s, c := p.connect(t, "again")
			ctx := limit(t)
			b := alloc(t, p.nodes[1], 100000, 3)
			if err := c.Send(ctx, b); err != nil {
				t.Fatal(err)
			}
			p.nodes[1].Free(b)
			got, err := s.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, 100000, 3)
			p.nodes[0].Free(got)
		})
	}
}

// TestSilentPeerIsFound: with no traffic, a partition is found by the ping.
func TestSilentPeerIsFound(t *testing.T) {
	p := newPair(t, be.Config{AckTimeout: 10, RetryCount: 1, Keepalive: 30 * time.Millisecond, PeerTimeout: 10 * time.Second})
	_, client := p.connect(t, "idle")
	p.fabric.Partition(p.devs[0], p.devs[1], true)
	_, err := client.Recv(limit(t))
	if !errors.Is(err, cq.RetryExceededError) && !errors.Is(err, be.ErrPeerLost) {
		t.Errorf("receive: %v", err)
	}
}

// TestIdlePeersStay: pings keep an idle engine alive.
func TestIdlePeersStay(t *testing.T) {
	p := newPair(t, be.Config{Keepalive: 10 * time.Millisecond, PeerTimeout: 30 * time.Second})
	server, client := p.connect(t, "idle")
	eventually(t, "some pings", func() bool { return p.nodes[1].Stats().Sends >= 6 })
	if server.Err() != nil || client.Err() != nil {
		t.Errorf("errors %v and %v", server.Err(), client.Err())
	}
}

// TestLossyFabricDeliversEverything: the device repeats what is lost, and the
// engine does not notice.
func TestLossyFabricDeliversEverything(t *testing.T) {
	p := newPairOn(t, sim.Config{Seed: 7, Segment: true}, be.Config{AckTimeout: 8, RetryCount: 7}, be.Config{AckTimeout: 8, RetryCount: 7})
	p.fabric.SetFaults(sim.Faults{Drop: 0.01, Duplicate: 0.01, Delay: 0.01, MaxDelay: 200 * time.Microsecond})
	server, client := p.connect(t, "lossy")
	ctx := limit(t)
	for i := range 60 {
		size := i * 3000
		b := alloc(t, p.nodes[1], size, byte(i))
		if err := client.Send(ctx, b); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		p.nodes[1].Free(b)
		got, err := server.Recv(ctx)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		check(t, got, size, byte(i))
		p.nodes[0].Free(got)
	}
	if st := p.fabric.FaultStats(); st.Dropped == 0 {
		t.Error("the fabric lost nothing")
	}
	p.fabric.SetFaults(sim.Faults{})
}

// TestSendCompletionsLate is case C11: completions of receives, with the peer's
// credits in them, overtake those of sends that free the chain's slots. No post
// of a million may find the queue full.
func TestSendCompletionsLate(t *testing.T) {
	each := 125_000
	if raceEnabled || testing.Short() {
		each = 4000
	}
	f := sim.NewFabric(sim.Config{})
	p := &pair{fabric: f}
	for i := range p.nodes {
		dev, err := f.NewDevice(fmt.Sprint("sim", i), sim.DeviceConfig{HoldSends: 32})
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := dev.Open()
		if err != nil {
			t.Fatal(err)
		}
		if p.nodes[i], err = be.NewNode(ctx, be.Config{SendDepth: 32, PackBytes: -1}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.nodes[i].Close(); err != nil {
				t.Error(err)
			}
			ctx.Close()
		})
	}
	var err error
	if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server, client := p.connect(t, "late")
	ctx := limit(t)
	var wg sync.WaitGroup
	const goroutines = 4
	for range goroutines {
		for _, way := range []struct {
			n *be.Node
			s *be.Socket
		}{{p.nodes[1], client}, {p.nodes[0], server}} {
			wg.Go(func() {
				free := make(chan error, 16) // of all goroutines, twice what the chain holds
				for i := range each + cap(free) {
					if i >= cap(free) {
						if err := <-free; err != nil {
							t.Errorf("send: %v", err)
							return
						}
					}
					if i >= each {
						continue
					}
					b := alloc(t, way.n, 64, 1)
					if err := way.s.Post(b, func(err error) {
						if err == nil {
							way.n.Free(b)
						}
						free <- err
					}); err != nil {
						t.Errorf("send: %v", err)
						return
					}
				}
			})
			wg.Go(func() {
				for range each {
					b, err := way.s.Recv(ctx)
					if err != nil {
						t.Errorf("receive: %v", err)
						return
					}
					way.n.Free(b)
				}
			})
		}
	}
	wg.Wait()
	for _, n := range p.nodes {
		st := n.Stats()
		if errors.Is(client.Err(), qp.ErrQueueFull) || st.Failures != 0 || st.RNR != 0 {
			t.Errorf("stats %+v", st)
		}
		if st.SlotStalls == 0 || st.SlotStall == 0 {
			t.Error("no engine waited for a slot: the test shows nothing")
		}
	}
}

// count gives the number of entries of a directory, or of lines of a file.
func count(t *testing.T, path string) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	if b, err := os.ReadFile(path); err == nil {
		return bytes.Count(b, []byte("\n"))
	}
	l, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return len(l)
}

// TestNothingLeftBehind opens and closes nodes with traffic: goroutines, file
// descriptors, mappings and registered memory are as before.
func TestNothingLeftBehind(t *testing.T) {
	if testmodel.Active() {
		t.Skip("a context of the modelled NIC has goroutines and descriptors until it is closed, which is after this test")
	}
	before := runtime.NumGoroutine()
	var fds, maps int
	for i := range 6 {
		if i == 3 { // the runtime has what it needs
			runtime.GC()
			fds, maps = count(t, "/proc/self/fd"), count(t, "/proc/self/maps")
		}
		p := newPair(t, be.Config{})
		server, client := p.connect(t, "x")
		b := alloc(t, p.nodes[1], 1<<20, 1)
		if err := client.Send(limit(t), b); err != nil {
			t.Fatal(err)
		}
		p.nodes[1].Free(b)
		_ = server // its message is not taken: Close drops it
		for _, n := range p.nodes {
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range p.devs {
			if d.Locked() != 0 {
				t.Errorf("%d bytes are still registered", d.Locked())
			}
		}
	}
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	eventually(t, "descriptors are closed", func() bool { return count(t, "/proc/self/fd") <= fds })
	// The heap may take a mapping or two for itself, a node would take more.
	if n := count(t, "/proc/self/maps"); n > maps+4 {
		t.Errorf("%d mappings, %d before three more nodes", n, maps)
	}
}
