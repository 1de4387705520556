package be_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// spy is a device context that remembers the queue pairs of engines made in it.
type spy struct {
	verbs.Context
	mu  sync.Mutex
	qps []qp.QP
}

type spyPD struct {
	verbs.PD
	s *spy
}

func (s *spy) AllocPD() (verbs.PD, error) {
	pd, err := s.Context.AllocPD()
	return spyPD{pd, s}, err
}

func (p spyPD) CreateQP(cfg verbs.QPConfig) (qp.QP, error) {
	q, err := p.PD.CreateQP(cfg)
	if err == nil && cfg.Caps.RecvWR >= 4 { // of an engine: those that try out a GID have fewer
		p.s.mu.Lock()
		p.s.qps = append(p.s.qps, q)
		p.s.mu.Unlock()
	}
	return q, err
}

// made gives the queue pairs of engines that were made so far.
func (s *spy) made() []qp.QP {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]qp.QP(nil), s.qps...)
}

// spyOn opens a device.
func spyOn(t testing.TB, dev verbs.Device) *spy {
	t.Helper()
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	return &spy{Context: ctx}
}

// load is messages on their way, each of which ends once.
type load struct {
	calls  []atomic.Int32
	failed atomic.Int32
}

// post posts n messages of these sizes, by turns.
func (l *load) post(t testing.TB, s *be.Socket, n int, sizes ...int) {
	t.Helper()
	l.calls = make([]atomic.Int32, n)
	for i := range n {
		b := alloc(t, s.Node(), sizes[i%len(sizes)], byte(i))
		if err := s.Post(b, func(err error) {
			if err == nil {
				s.Node().Free(b)
			} else {
				l.failed.Add(1)
			}
			l.calls[i].Add(1)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *load) ended() (n int) {
	for i := range l.calls {
		if l.calls[i].Load() > 0 {
			n++
		}
	}
	return n
}

// once fails the test if a message did not end, or not once.
func (l *load) once(t testing.TB) {
	t.Helper()
	for i := range l.calls {
		if n := l.calls[i].Load(); n != 1 {
			t.Errorf("message %d ended %d times", i, n)
		}
	}
}

// inFlight is how many requests a node has at its device.
func inFlight(n *be.Node) (sum uint64) {
	for _, e := range n.EngineStats() {
		sum += e.InFlight
	}
	return sum
}

// hearIn has goroutines send with a deadline each, and gives what they hear.
func hearIn(s *be.Socket, n int, d time.Duration) <-chan error {
	heard := make(chan error, n)
	for range n {
		go func() {
			b, err := s.Node().Alloc(64)
			if err == nil {
				ctx, cancel := context.WithTimeout(context.Background(), d)
				defer cancel()
				if err = s.Send(ctx, b); err == nil {
					s.Node().Free(b)
				}
			}
			heard <- err
		}()
	}
	return heard
}

// switchboard passes TCP connections on. Once it is frozen, nothing of the old ones gets
// through any more, nor that they end, and new ones lead where to says.
type switchboard struct {
	addr   string
	to     atomic.Pointer[string]
	frozen atomic.Bool
}

func newSwitchboard(t *testing.T, to string) *switchboard {
	b := &switchboard{}
	b.to.Store(&to)
	b.addr = serve(t, func(c net.Conn) {
		d, err := net.Dial("tcp", *b.to.Load())
		if err != nil {
			c.Close()
			return
		}
		old := !b.frozen.Load()
		var wg sync.WaitGroup
		for _, pair := range [][2]net.Conn{{c, d}, {d, c}} {
			wg.Go(func() {
				buf := make([]byte, 4096)
				for {
					n, err := pair[0].Read(buf)
					if old && b.frozen.Load() {
						n = 0 // the cable is cut: bytes vanish, and so does the end
						if err != nil {
							return
						}
					}
					if _, werr := pair[1].Write(buf[:n]); err != nil || werr != nil {
						if err == io.EOF {
							pair[1].(*net.TCPConn).CloseWrite()
						}
						return
					}
				}
			})
		}
		wg.Wait()
		c.Close()
		d.Close()
	})
	return b
}

// outstanding is how many requests are at the device when the fault strikes.
const outstanding = 64

// deep has room for 64 requests of 4 KiB at the device at once.
var deep = be.Config{SendDepth: 2 * outstanding, RecvDepth: 4 * outstanding, FragmentBytes: 4 << 10, WindowBytes: 8 << 20, AckTimeout: 14, RetryCount: 2, Linger: time.Second}

// TestFaultsWithRequestsOutstanding strikes while the device has 64 requests: each
// message ends once, callers hear by their deadlines, memory is as before, and the next
// dial works. Before the fault none of them ended, so it is the fault that ends them.
func TestFaultsWithRequestsOutstanding(t *testing.T) {
	for _, tt := range []struct {
		desc   string
		ack    qp.AckTimeout
		strike func(p *pair, s *spy, x *proxy)
		mend   func(p *pair) // nil: it cannot be mended
		is     []error
	}{
		{"queue pair in error", 22, func(p *pair, s *spy, x *proxy) {
			if err := s.made()[0].Modify(&qp.Attr{State: qp.Err}, qp.MaskState); err != nil {
				panic(err)
			}
		}, func(p *pair) {}, []error{cq.WRFlushError}},
		{"peer killed", 22, func(p *pair, s *spy, x *proxy) { p.devs[0].Remove(); x.reset() }, nil, []error{be.ErrPeerLost}},
		{"peer vanishes", 16, func(p *pair, s *spy, x *proxy) {}, func(p *pair) {}, []error{cq.RetryExceededError}},
		{"port down and up, GID moved", 22, func(p *pair, s *spy, x *proxy) { p.devs[1].SetPortState(1, verbs.PortDown) },
			func(p *pair) {
				p.devs[1].SetGIDs(1, []nic.GID{{}, {}, {}, {GIDEntry: verbs.GIDEntry{GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 7, 14: 7, 15: 8}, Type: verbs.GIDRoCEv2}}})
				p.devs[1].SetPortState(1, verbs.PortActive)
			}, nil},
		{"NIC removed", 22, func(p *pair, s *spy, x *proxy) { p.devs[1].Remove() }, nil, []error{verbs.ErrDeviceLost}},
	} {
		for _, pack := range []int{-1, 0} {
			t.Run(fmt.Sprintf("%s/pack=%v", tt.desc, pack == 0), func(t *testing.T) {
				requests := uint64(outstanding)
				if pack == 0 {
					requests = outstanding * 2 / 3 // of three messages two go together
				}
				cfg := be.Config{PackBytes: pack, AckTimeout: tt.ack, RetryCount: 1, SendDepth: 2 * outstanding, RecvDepth: 4 * outstanding, WindowBytes: 8 << 20, Keepalive: -1, Linger: time.Second}
				p := &pair{fabric: sim.NewFabric(simDefaults)}
				p.devs[0], p.nodes[0] = newNode(t, p.fabric, "sim0", cfg)
				var err error
				if p.devs[1], err = p.fabric.NewDevice("sim1", sim.DeviceConfig{}); err != nil {
					t.Fatal(err)
				}
				s := spyOn(t, testmodel.On(t, p.devs[1]))
				p.nodes[1] = nodeIn(t, s, cfg)
				if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
					t.Fatal(err)
				}
				before := [2]int64{p.nodes[0].Stats().Memory.InUseBytes, p.nodes[1].Stats().Memory.InUseBytes}
				x := newProxy(t, p.listener.Addr().String())
				server, client := p.connectBy(t, x.addr, "x")
				exchange(t, client, server, 300_000, 1)
				p.fabric.Partition(p.devs[0], p.devs[1], true)
				var l load
				l.post(t, client, outstanding, 64, 0, 3000)
				heard := hearIn(client, 4, 50*time.Millisecond)
				eventually(t, "requests at the device", func() bool { return inFlight(p.nodes[1]) >= requests || client.Err() != nil })
				if n := l.ended(); n != 0 && tt.ack == 22 {
					t.Fatalf("%d messages ended before the fault", n)
				}
				for range 4 {
					if err := <-heard; err == nil || tt.ack == 22 && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("a caller with a deadline heard %v", err)
					}
				}
				tt.strike(p, s, x)
				eventually(t, "every message ends", func() bool { return l.ended() == outstanding })
				if _, err := client.Recv(limit(t)); err == nil || l.failed.Load() != outstanding {
					t.Errorf("receive: %v; %d of %d messages failed", err, l.failed.Load(), outstanding)
				}
				ok := tt.is == nil
				for _, is := range tt.is {
					ok = ok || errors.Is(client.Err(), is)
				}
				if !ok {
					t.Errorf("the socket ended with %v", client.Err())
				}
				for i, n := range p.nodes {
					eventually(t, "no engine left", func() bool { return n.Stats().Engines == 0 })
					if in := n.Stats().Memory.InUseBytes; in != before[i] {
						t.Errorf("node %d: %d bytes are in use, %d before the dial", i, in, before[i])
					}
				}
				l.once(t)
				if tt.mend == nil {
					return
				}
				p.fabric.Partition(p.devs[0], p.devs[1], false)
				tt.mend(p)
				again, newClient := p.connect(t, "again")
				exchange(t, newClient, again, 100_000, 2)
				l.once(t)
			})
		}
	}
}

// TestPeerRestartsAtItsAddress: a peer's host vanishes without a word, and another
// process listens at its address. The next dial works; what the old one still has to say
// reaches nobody, neither as messages nor as the end of anything new (case C19).
func TestPeerRestartsAtItsAddress(t *testing.T) {
	cfg := be.Config{AckTimeout: 12, RetryCount: 2, Keepalive: 20 * time.Millisecond, Linger: 10 * time.Millisecond}
	p := newPair(t, cfg)
	x := newSwitchboard(t, p.listener.Addr().String())
	dial := func() (server, client *be.Socket) {
		t.Helper()
		client, err := p.nodes[1].Dial(limit(t), x.addr, "x")
		if err != nil {
			t.Fatal(err)
		}
		if server, err = p.listener.Accept(limit(t)); err != nil {
			t.Fatal(err)
		}
		return server, client
	}
	oldServer, oldClient := dial()
	exchange(t, oldClient, oldServer, 20_000, 1)
	// The host is gone: neither packets nor the end of its connections arrive.
	x.frozen.Store(true)
	p.fabric.Partition(p.devs[0], p.devs[1], true)
	if _, err := oldClient.Recv(limit(t)); err == nil {
		t.Fatal("a message of a peer that is gone")
	}
	_, next := newNode(t, p.fabric, "sim2", cfg)
	l, err := next.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := l.Addr().String()
	x.to.Store(&to)
	p.listener = l
	server, client := dial()
	// The old process comes back and goes on as if nothing had been.
	p.fabric.Partition(p.devs[0], p.devs[1], false)
	var late load
	b, err := p.nodes[0].Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	late.calls = make([]atomic.Int32, 1)
	if err := oldServer.Post(b, func(err error) {
		if err == nil {
			t.Error("a message of the old process was sent well")
		}
		late.calls[0].Add(1)
	}); err != nil {
		p.nodes[0].Free(b) // it has noticed
		late.calls[0].Add(1)
	}
	for i := range 20 {
		exchange(t, client, server, 1000*i, byte(i))
	}
	eventually(t, "the old process notices", func() bool { return late.ended() == 1 && oldServer.Err() != nil })
	if client.Err() != nil || server.Err() != nil {
		t.Errorf("the new sockets ended with %v and %v", client.Err(), server.Err())
	}
	if st := p.nodes[1].Stats(); st.Engines != 1 {
		t.Errorf("%d engines, want the new one only", st.Engines)
	}
}

// TestOtherPortIsLeftAlone: of a device with two ports one goes down and comes back with
// its GID at another index. The engines on it are rebuilt once each; those on the other
// port notice nothing (case C17).
func TestOtherPortIsLeftAlone(t *testing.T) {
	f := sim.NewFabric(simDefaults)
	quick := be.Config{AckTimeout: 12, RetryCount: 2, Workers: 3}
	_, hub := newNode(t, f, "hub", be.Config{Workers: 3})
	l, err := hub.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := f.NewDevice("two", sim.DeviceConfig{Ports: make([]nic.Port, 2)})
	if err != nil {
		t.Fatal(err)
	}
	const engines = 3
	open := func(n *be.Node, port int) (all []*be.Socket) {
		t.Helper()
		for range engines {
			s, err := n.Dial(limit(t), l.Addr().String(), fmt.Sprint(port))
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := l.Accept(limit(t))
			if err != nil {
				t.Fatal(err)
			}
			exchange(t, s, accepted, 50_000, byte(port))
			all = append(all, s)
		}
		return all
	}
	var spies [2]*spy
	var nodes [2]*be.Node
	var sockets [2][]*be.Socket
	for i := range nodes {
		cfg := quick
		cfg.Port = i + 1
		spies[i] = spyOn(t, testmodel.On(t, dev))
		nodes[i] = nodeIn(t, spies[i], cfg)
		sockets[i] = open(nodes[i], i+1)
	}
	if err := dev.SetPortState(1, verbs.PortDown); err != nil {
		t.Fatal(err)
	}
	for _, s := range sockets[0] {
		if _, err := s.Recv(limit(t)); err == nil {
			t.Error("a socket on the port that went down has a message")
		}
	}
	dev.SetGIDs(1, []nic.GID{{}, {}, {}, {}, {GIDEntry: verbs.GIDEntry{GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 9, 14: 9, 15: 9}, Type: verbs.GIDRoCEv2}}})
	if err := dev.SetPortState(1, verbs.PortActive); err != nil {
		t.Fatal(err)
	}
	open(nodes[0], 1)
	if n := len(spies[0].made()); n != 2*engines {
		t.Errorf("%d queue pairs on the port that came back, want %d: each engine twice", n, 2*engines)
	}
	for i, s := range sockets[1] {
		if s.Err() != nil {
			t.Errorf("socket %d on the other port: %v", i, s.Err())
		}
	}
	st := nodes[1].Stats()
	if n := len(spies[1].made()); n != engines || st.Failures+st.RNR != 0 || st.Engines != engines {
		t.Errorf("the other port: %d queue pairs, %d engines, %d failures", n, st.Engines, st.Failures)
	}
	if nodes[0].Stats().Engines != engines {
		t.Errorf("%d engines on the port that came back", nodes[0].Stats().Engines)
	}
}

// TestMovedGIDAtItsOldIndex is the control of those that move a GID: a node that goes on
// with the index of before cannot dial any more.
func TestMovedGIDAtItsOldIndex(t *testing.T) {
	first := 0
	f := sim.NewFabric(simDefaults)
	_, hub := newNode(t, f, "hub", be.Config{})
	l, err := hub.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := f.NewDevice("moves", sim.DeviceConfig{Ports: []nic.Port{{GIDs: []nic.GID{gidOf(0, verbs.GIDRoCEv2, 77)}}}})
	if err != nil {
		t.Fatal(err)
	}
	n := nodeOn(t, testmodel.On(t, dev), be.Config{GIDIndex: &first, AckTimeout: 10, RetryCount: 1})
	s, err := n.Dial(limit(t), l.Addr().String(), "x")
	if err != nil {
		t.Fatal(err)
	}
	moved := gidOf(0, verbs.GIDRoCEv2, 77)
	moved.Index = 4
	if err := dev.SetPortState(1, verbs.PortDown); err != nil {
		t.Fatal(err)
	}
	if err := dev.SetGIDs(1, []nic.GID{{}, {}, {}, {}, moved}); err != nil {
		t.Fatal(err)
	}
	if err := dev.SetPortState(1, verbs.PortActive); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(limit(t)); err == nil {
		t.Error("the socket on the port that went down has a message")
	}
	if _, err := n.Dial(limit(t), l.Addr().String(), "x"); err == nil {
		t.Error("the old index works: the tests that move a GID show nothing")
	}
}
