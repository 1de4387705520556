package be_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// frame is a value as the bootstrap sends it.
func frame(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// readFrame reads one frame of the bootstrap.
func readFrame(c net.Conn) (map[string]any, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(c, prefix[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint32(prefix[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	var m map[string]any
	return m, json.Unmarshal(b, &m)
}

// serve runs f with each connection to a new TCP listener.
func serve(t *testing.T, f func(net.Conn)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() { f(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// peerHello is a hello that the node takes.
func peerHello() map[string]any {
	return map[string]any{
		"protocol": "byteexpress", "min_version": 1, "max_version": 1, "incarnation": strings.Repeat("0f", 16), "device": "fake", "port": 1,
		"link_layer": "Ethernet", "gid": "::ffff:10.9.9.9", "gid_type": "RoCE v2", "mtu_bytes": 4096, "qp_num": 77, "psn": 5, "recv_depth": 64,
		"eager_bytes": 8192, "fragment_bytes": 65536, "max_message_bytes": 1 << 30, "backlog": 16, "max_sockets": 100, "max_reads": 1,
	}
}

func with(m map[string]any, key string, v any) map[string]any {
	m[key] = v
	return m
}

func TestDialErrorsNameTheStep(t *testing.T) {
	hang := func(c net.Conn) { io.Copy(io.Discard, c) }
	greet := func(h map[string]any) func(net.Conn) {
		return func(c net.Conn) {
			if _, err := readFrame(c); err == nil {
				c.Write(frame(h))
				hang(c)
			}
		}
	}
	for _, tt := range []struct {
		desc   string
		server func(net.Conn)
		is     error
		want   []string
	}{
		{"hangs before its hello", hang, nil, []string{"read the peer's hello", "no answer", "500ms (Config.StepTimeout)"}},
		{"hangs within its hello", func(c net.Conn) { c.Write([]byte{100, 0, 0, 0, '{'}); hang(c) }, nil, []string{"read the peer's hello", "no answer"}},
		{"hangs before ready", greet(peerHello()), nil, []string{"wait for the peer's ready", "no answer"}},
		{"closes at once", func(c net.Conn) { c.Close() }, nil, []string{"hello"}},
		{"closes after its hello", func(c net.Conn) {
			readFrame(c)
			c.Write(frame(peerHello()))
			c.(*net.TCPConn).CloseWrite()
			hang(c)
		}, io.ErrUnexpectedEOF, []string{"wait for the peer's ready"}},
		{"speaks HTTP", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); hang(c) }, be.ErrProtocol, []string{"another protocol", "HTTP", "check address and port"}},
		{"says it is too long", func(c net.Conn) { c.Write([]byte{1, 0, 1, 0}); hang(c) }, be.ErrProtocol, []string{"at most 65536"}},
		{"sends no JSON", func(c net.Conn) { c.Write([]byte("\x04\x00\x00\x00abcd")); hang(c) }, be.ErrProtocol, []string{"JSON"}},
		{"is another program", greet(map[string]any{"protocol": "other"}), be.ErrProtocol, []string{`"other"`}},
		{"is newer", greet(with(with(peerHello(), "min_version", 7), "max_version", 9)), be.ErrVersion, []string{"7 to 9", "1 to 1", "update"}},
		{"has a bad incarnation", greet(with(peerHello(), "incarnation", "12")), be.ErrProtocol, []string{"incarnation"}},
		{"uses RoCE v1", greet(with(peerHello(), "gid_type", "RoCE v1")), nil, []string{"RoCE v1", "RoCE v2", "GIDIndex"}},
		{"is on InfiniBand", greet(with(peerHello(), "link_layer", "InfiniBand")), nil, []string{"InfiniBand", "Ethernet"}},
		{"has an odd MTU", greet(with(peerHello(), "mtu_bytes", 1500)), be.ErrProtocol, []string{"mtu_bytes", "1500"}},
		{"has no receives", greet(with(peerHello(), "recv_depth", 0)), be.ErrProtocol, []string{"recv_depth"}},
		{"has a negative eager limit", greet(with(peerHello(), "eager_bytes", -1)), be.ErrProtocol, []string{"eager_bytes"}},
		{"has a fragment of 2^40", greet(with(peerHello(), "fragment_bytes", 1<<40)), be.ErrProtocol, []string{"fragment_bytes"}},
		{"has a wide QP number", greet(with(peerHello(), "qp_num", 1<<24)), be.ErrProtocol, []string{"qp_num"}},
		{"refuses", greet(with(peerHello(), "refused", map[string]any{"code": "busy", "text": "come later"})), be.ErrRefused, []string{"busy", "come later"}},
		{"means another incarnation", func(c net.Conn) {
			readFrame(c)
			c.Write(frame(peerHello()))
			readFrame(c)
			c.Write(frame(map[string]any{"incarnation": strings.Repeat("0f", 16), "peer": strings.Repeat("ff", 16)}))
			hang(c)
		}, be.ErrIncarnation, []string{"wait for the peer's ready"}},
		{"fails to come up", func(c net.Conn) {
			readFrame(c)
			c.Write(frame(peerHello()))
			readFrame(c)
			c.Write(frame(map[string]any{"incarnation": strings.Repeat("0f", 16), "error": "no such device"}))
			hang(c)
		}, be.ErrRefused, []string{"no such device"}},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			cfg := be.Config{StepTimeout: time.Minute}
			if slices.Contains(tt.want, "no answer") {
				cfg.StepTimeout = 500 * time.Millisecond
			}
			_, n := newNode(t, sim.NewFabric(sim.Config{}), "sim0", cfg)
			addr := serve(t, tt.server)
			_, err := n.Dial(limit(t), addr, "x")
			if err == nil {
				t.Fatal("no error")
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			for _, w := range append(tt.want, addr) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			eventually(t, "no engine left", func() bool { return n.Stats().Engines == 0 })
		})
	}
}

func TestDialNobody(t *testing.T) {
	_, n := newNode(t, sim.NewFabric(sim.Config{}), "sim0", be.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	if _, err := n.Dial(limit(t), addr, "x"); !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), addr) {
		t.Errorf("dial: %v", err)
	}
}

func TestPortTaken(t *testing.T) {
	p := newPair(t, be.Config{})
	addr := p.listener.Addr().String()
	if _, err := p.nodes[1].Listen(addr); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), addr) {
		t.Errorf("listen: %v", err)
	}
}

func TestDialSelf(t *testing.T) {
	p := newPair(t, be.Config{})
	if _, err := p.nodes[0].Dial(limit(t), p.listener.Addr().String(), "x"); !errors.Is(err, be.ErrRefused) || !strings.Contains(err.Error(), "own listener") {
		t.Errorf("dial of the own listener: %v", err)
	}
}

// TestListenerSurvivesBadClients: whatever clients do, the next good one gets in.
func TestListenerSurvivesBadClients(t *testing.T) {
	p := newPair(t, be.Config{StepTimeout: 2 * time.Second})
	addr := p.listener.Addr().String()
	bad := []func(net.Conn){
		func(c net.Conn) { c.Close() },
		func(c net.Conn) {}, // hangs
		func(c net.Conn) { io.WriteString(c, "GET / HTTP/1.1\r\n\r\n") },
		func(c net.Conn) { c.Write([]byte{0xff, 0xff, 0xff, 0xff}) },
		func(c net.Conn) { c.Write([]byte{10, 0, 0, 0, 'x'}) },
		func(c net.Conn) {
			c.Write(frame(map[string]any{"protocol": "byteexpress", "min_version": 9, "max_version": 9}))
		},
		func(c net.Conn) { c.Write(frame(peerHello())) }, // hangs after its hello
		func(c net.Conn) { c.Write(frame(with(peerHello(), "recv_depth", 1<<40))) },
		func(c net.Conn) { c.Write(frame(with(peerHello(), "gid_type", "RoCE v1"))) },
		func(c net.Conn) {
			c.Write(frame(with(peerHello(), "incarnation", strings.Repeat("0a", 16))))
			readFrame(c)
			c.Write(frame(map[string]any{"incarnation": strings.Repeat("0b", 16), "peer": strings.Repeat("0c", 16)}))
		},
		func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() },
	}
	late := 0
	for i, f := range bad {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		f(c)
		ctx := limit(t)
		client, err := p.nodes[1].Dial(ctx, addr, fmt.Sprint(i))
		for ; err != nil && ctx.Err() == nil; late++ { // on a busy machine good ones may take too long too
			client, err = p.nodes[1].Dial(ctx, addr, fmt.Sprint(i))
		}
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
	eventually(t, "bad clients given up", func() bool {
		n := p.nodes[0].Stats().BadClients
		return n >= uint64(len(bad)) && n <= uint64(len(bad)+late)
	})
	eventually(t, "one engine", func() bool { return p.nodes[0].Stats().Engines == 1 })
}

// TestConcurrentDialsShareOneEngine dials both ways at once from many goroutines.
func TestConcurrentDialsShareOneEngine(t *testing.T) {
	for round := range 20 {
		p := newPair(t, be.Config{})
		other, err := p.nodes[1].Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx := limit(t)
		var wg sync.WaitGroup
		const each = 8
		start := make(chan struct{})
		for range each {
			for i, l := range []*be.Listener{other, p.listener} {
				wg.Go(func() {
					<-start
					if _, err := p.nodes[i].Dial(ctx, l.Addr().String(), "x"); err != nil {
						t.Errorf("round %d: node %d: %v", round, i, err)
					}
				})
				wg.Go(func() {
					if _, err := l.Accept(ctx); err != nil {
						t.Errorf("round %d: node %d: %v", round, i, err)
					}
				})
			}
		}
		close(start)
		wg.Wait()
		for i, n := range p.nodes {
			if st := n.Stats(); st.Sockets != 2*each {
				t.Fatalf("round %d: node %d: %d sockets, want %d", round, i, st.Sockets, 2*each)
			}
			// One that came up half and gave way may still drain.
			eventually(t, "one engine", func() bool { return n.Stats().Engines == 1 })
		}
	}
}

func TestSmallerValuesOfBothSidesCount(t *testing.T) {
	p := newPairOn(t, sim.Config{Segment: true}, be.Config{MaxMessage: 5000, EagerBytes: 1024, MTU: qp.MTU1024}, be.Config{FragmentBytes: 1000, MTU: qp.MTU2048})
	server, client := p.connect(t, "x")
	if client.MaxMessage() != 5000 || server.MaxMessage() != 5000 {
		t.Errorf("limits %d and %d, want 5000", client.MaxMessage(), server.MaxMessage())
	}
	ctx := limit(t)
	if err := client.Send(ctx, alloc(t, p.nodes[1], 5001, 0)); !errors.Is(err, be.ErrTooLarge) || !strings.Contains(err.Error(), "5000") {
		t.Errorf("send: %v", err)
	}
	for _, size := range []int{1024, 1025, 4999, 5000} {
		b := alloc(t, p.nodes[1], size, 7)
		if err := client.Send(ctx, b); err != nil {
			t.Fatal(err)
		}
		p.nodes[1].Free(b)
		got, err := server.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got, size, 7)
		p.nodes[0].Free(got)
	}
	if st := p.nodes[1].Stats(); st.Fragments != 2+5+5 || st.Eager != 1 {
		t.Errorf("%d fragments and %d eager messages, want 12 and 1", st.Fragments, st.Eager)
	}
}

func TestDialContextEndsBeforeAnswer(t *testing.T) {
	_, n := newNode(t, sim.NewFabric(sim.Config{}), "sim0", be.Config{StepTimeout: time.Hour})
	addr := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	for wait := 20 * time.Millisecond; ; wait *= 2 { // a slow machine may not come as far as that
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		_, err := n.Dial(ctx, addr, "x")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || wait > time.Minute {
			t.Fatalf("dial: %v", err)
		}
		if strings.Contains(err.Error(), "hello") {
			return
		}
	}
}

func TestDialWithPortDown(t *testing.T) {
	p := newPair(t, be.Config{})
	p.devs[1].SetPortState(1, verbs.PortDown)
	_, err := p.nodes[1].Dial(limit(t), p.listener.Addr().String(), "x")
	if err == nil || !strings.Contains(err.Error(), "sim1: port 1 is DOWN: bring its link up") {
		t.Errorf("dial: %v", err)
	}
	p.devs[1].SetPortState(1, verbs.PortActive)
	p.connect(t, "up again")
}

// TestTooManyEngines: a completion queue that is spoken for refuses the next
// engine, on either side, and names the limit.
func TestTooManyEngines(t *testing.T) {
	p := newPairOn(t, simDefaults, be.Config{CQEntries: 100}, be.Config{})
	p.connect(t, "first")
	_, third := newNode(t, p.fabric, "third", be.Config{})
	_, err := third.Dial(limit(t), p.listener.Addr().String(), "x")
	if !errors.Is(err, be.ErrRefused) || !strings.Contains(err.Error(), "CQEntries") {
		t.Errorf("dial of a full node: %v", err)
	}
	l, err := third.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.nodes[0].Dial(limit(t), l.Addr().String(), "x"); !errors.Is(err, be.ErrEngines) || !strings.Contains(err.Error(), "CQEntries") {
		t.Errorf("dial from a full node: %v", err)
	}
	// When the first engine ends, there is room again.
	p.nodes[1].Close()
	eventually(t, "room", func() bool { return p.nodes[0].Stats().Engines == 0 })
	if _, err := third.Dial(limit(t), p.listener.Addr().String(), "x"); err != nil {
		t.Errorf("dial after the engine ended: %v", err)
	}
}

// TestListenerClosed: a socket for a listener that was closed is refused with the
// reason, and the engine stays.
func TestListenerClosed(t *testing.T) {
	p := newPair(t, be.Config{})
	p.connect(t, "first")
	addr := p.listener.Addr().String()
	p.listener.Close()
	if _, err := p.nodes[1].Dial(limit(t), addr, "second"); !errors.Is(err, be.ErrRefused) || !strings.Contains(err.Error(), "listener is closed") {
		t.Errorf("dial of a closed listener: %v", err)
	}
	if _, err := p.listener.Accept(limit(t)); !errors.Is(err, be.ErrClosed) {
		t.Errorf("accept on a closed listener: %v", err)
	}
	if st := p.nodes[1].Stats(); st.Engines != 1 || st.Sockets != 1 {
		t.Errorf("%d engines, %d sockets", st.Engines, st.Sockets)
	}
}

// TestTwoListenersShareOneEngine: each socket comes out of the listener that was
// dialed.
func TestTwoListenersShareOneEngine(t *testing.T) {
	p := newPair(t, be.Config{})
	second, err := p.nodes[0].Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx := limit(t)
	for i, l := range []*be.Listener{p.listener, second, p.listener, second} {
		name := fmt.Sprint(i)
		if _, err := p.nodes[1].Dial(ctx, l.Addr().String(), name); err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept(ctx)
		if err != nil || s.Service() != name {
			t.Fatalf("listener %d: %v", i%2, err)
		}
	}
	eventually(t, "one engine", func() bool { return p.nodes[1].Stats().Engines == 1 })
}
