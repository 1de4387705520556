package archon

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// attacker is a raw end of a connection. It sends any bytes as a message, and reads what
// it is told to read, or nothing.
type attacker interface {
	// message sends one message.
	message(b []byte)
	// raw sends bytes beneath the messages: of the stream over TCP, as one message of
	// package be over ByteExpress.
	raw(b []byte)
	// hear drops what comes from now on; gone is closed when the peer has hung up.
	hear() (gone <-chan struct{})
	close()
}

type tcpAttacker struct{ conn net.Conn }

func (a tcpAttacker) message(b []byte) {
	a.raw(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...))
}

func (a tcpAttacker) raw(b []byte) {
	a.conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)) // of a peer that reads no more
	a.conn.Write(b)
}

func (a tcpAttacker) hear() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, a.conn)
		close(gone)
	}()
	return gone
}

func (a tcpAttacker) close() { a.conn.Close() }

type beAttacker struct {
	sock *be.Socket
	node *be.Node
	gone chan struct{}
}

func (a *beAttacker) message(b []byte) {
	if len(b) > bundledBytes {
		a.raw(b)
		return
	}
	bundle := make([]byte, bundleHeader+bundledSize(len(b)))
	appendBundled(bundle, bundleHeader, b)
	putBundleHeader(bundle, 1)
	a.raw(bundle)
}

func (a *beAttacker) raw(b []byte) {
	m, err := a.node.Alloc(len(b))
	if err != nil {
		return
	}
	copy(m, b)
	if a.sock.Post(m, func(err error) {
		if err == nil {
			a.node.Free(m)
		}
	}) != nil {
		a.node.Free(m)
	}
}

func (a *beAttacker) hear() <-chan struct{} {
	a.sock.OnMessage(func(b []byte, err error) {
		if err != nil {
			close(a.gone)
			return
		}
		a.node.Free(b)
	})
	return a.gone
}

func (a *beAttacker) close() { a.sock.Close() }

// underAttack is a server, or a listener, that attackers and good clients come to.
type underAttack struct {
	addr   string
	node   *be.Node // of the server; nil over TCP
	good   Transport
	attack func(t testing.TB) attacker
}

func attackNode(t testing.TB, f *sim.Fabric, name string) *be.Node {
	dev, err := f.NewDevice(name, sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	n, err := be.NewNode(ctx, be.Config{Linger: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// onBothTransports runs f with the server's end of each transport, and with how to attack
// the address that it then listens on.
func onBothTransports(t *testing.T, f func(t *testing.T, server Transport, u *underAttack)) {
	t.Run("tcp", func(t *testing.T) {
		u := &underAttack{good: TCP{}}
		u.attack = func(t testing.TB) attacker {
			conn, err := net.Dial("tcp", u.addr)
			if err != nil {
				t.Fatal(err)
			}
			conn.Write(appendHello(nil, hello{max: 1 << 20, service: "x"}))
			return tcpAttacker{conn}
		}
		f(t, TCP{MaxMessage: 1 << 20, MessageTimeout: time.Second}, u)
	})
	t.Run("be", func(t *testing.T) {
		fabric := sim.NewFabric(sim.Config{})
		server, good, bad := attackNode(t, fabric, "sim:server"), attackNode(t, fabric, "sim:good"), attackNode(t, fabric, "sim:bad")
		u := &underAttack{node: server, good: BE{good}}
		u.attack = u.overBE(bad)
		f(t, BE{server}, u)
	})
}

// overBE dials from a node.
func (u *underAttack) overBE(from *be.Node) func(testing.TB) attacker {
	return func(t testing.TB) attacker {
		s, err := from.Dial(context.Background(), u.addr, "x")
		if err != nil {
			t.Fatal(err)
		}
		return &beAttacker{sock: s, node: from, gone: make(chan struct{})}
	}
}

// crafted is a message with a header and a body.
func crafted(h header, body []byte) []byte {
	b := append(make([]byte, HeaderSize), body...)
	h.put(b)
	return b
}

// request is a whole request of a kind that the server knows.
func request(m Method, id CallID, body []byte) []byte {
	return crafted(header{kind: kindRequest, id: id, method: m.id, payload: uint32(len(body))}, body)
}

func streamRequest(id CallID, window uint32, items int) []byte {
	return crafted(header{kind: kindRequest, flags: flagStream, id: id, method: countMethod.id, window: window, payload: uint32(items)}, make([]byte, items))
}

// attacks are what hostile clients do. Those with hangUp are violations, for which the
// server ends the connection; the others it bears.
var attacks = []struct {
	desc   string
	hangUp bool
	deaf   bool // the attacker reads nothing
	do     func(a attacker, rng *rand.Rand)
}{
	{"ids of no call", false, false, func(a attacker, rng *rand.Rand) {
		for range 200 {
			a.message(crafted(header{kind: kindCancel, id: CallID(rng.Uint64())}, nil))
			a.message(crafted(header{kind: kindWindow, id: newCallID(rng.Uint32N(8), rng.Uint32()), window: 1 + rng.Uint32N(maxWindow)}, nil))
		}
	}},
	{"a window for a call that cannot be", true, false, func(a attacker, _ *rand.Rand) {
		a.message(crafted(header{kind: kindWindow, id: newCallID(1<<31, 0), window: 1}, nil))
	}},
	{"room that was never taken", true, false, func(a attacker, _ *rand.Rand) {
		a.message(streamRequest(1, 100, 9))
		for range 8 {
			a.message(crafted(header{kind: kindWindow, id: 1, window: maxWindow}, nil))
		}
	}},
	{"a window for a call without a stream", true, false, func(a attacker, _ *rand.Rand) {
		a.message(request(slowMethod, 3, nil))
		a.message(crafted(header{kind: kindWindow, id: 3, window: 1}, nil))
	}},
	{"ids again and again", false, false, func(a attacker, rng *rand.Rand) {
		for i := range 300 {
			id := newCallID(rng.Uint32N(3), rng.Uint32N(2))
			switch i % 3 {
			case 0:
				a.message(streamRequest(id, 100, 5))
			case 1:
				a.message(request(WorkerMethod, id, []byte("again")))
			default:
				a.message(crafted(header{kind: kindCancel, id: id}, nil))
			}
		}
	}},
	{"more calls than may be, with no heed of refusals", false, true, func(a attacker, _ *rand.Rand) {
		for i := range CallID(3000) {
			a.message(request(slowMethod, i%64, nil))
		}
	}},
	{"answers that nobody reads", false, true, func(a attacker, _ *rand.Rand) {
		body := make([]byte, 60_000)
		for i := range CallID(200) {
			a.message(request(EchoMethod, i%64, body))
		}
	}},
	{"pings whose answers nobody reads", false, true, func(a attacker, _ *rand.Rand) {
		ping := crafted(header{kind: kindPing, id: 1}, nil)
		for range 5000 {
			a.message(ping)
		}
	}},
	{"one-way calls without end", false, false, func(a attacker, rng *rand.Rand) {
		for range 2000 {
			a.message(crafted(header{kind: kindRequest, flags: flagOneWay, method: WorkerMethod.id, payload: 8}, make([]byte, 8)))
		}
	}},
	{"metadata as much as may be", false, false, func(a attacker, _ *rand.Rand) {
		var md Metadata
		for md.Add("k", string(make([]byte, 1000))) == nil {
		}
		b := make([]byte, md.wireSize())
		md.put(b)
		for i := range CallID(500) {
			a.message(crafted(header{kind: kindRequest, id: i % 64, method: EchoMethod.id, meta: uint16(len(b))}, b))
		}
	}},
	{"metadata that is none", true, false, func(a attacker, rng *rand.Rand) {
		b := make([]byte, 64)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		b[0] = 0xff // longer than all of it
		a.message(crafted(header{kind: kindRequest, method: EchoMethod.id, meta: 64}, b))
	}},
	{"a message cut off", true, false, func(a attacker, rng *rand.Rand) {
		b := request(EchoMethod, 1, []byte("whole"))
		a.message(b[:rng.IntN(len(b))])
	}},
	{"a message of nothing", true, false, func(a attacker, _ *rand.Rand) { a.message(nil) }},
	{"what only servers send", true, false, func(a attacker, rng *rand.Rand) {
		a.message(crafted(header{kind: []kind{kindResponse, kindItem, kindPong}[rng.IntN(3)], id: 1}, nil))
	}},
	{"a goodbye, and calls all the same", false, false, func(a attacker, _ *rand.Rand) {
		for i := range CallID(100) {
			a.message(crafted(header{kind: kindGoAway}, nil))
			a.message(request(EchoMethod, i%64, nil))
		}
	}},
	{"a stream that is given up and asked for anew", false, false, func(a attacker, _ *rand.Rand) {
		for i := range uint32(500) {
			id := newCallID(0, i)
			a.message(streamRequest(id, 1, 40))
			a.message(crafted(header{kind: kindCancel, id: id}, nil))
		}
	}},
	{"bytes that are no message", true, false, func(a attacker, rng *rand.Rand) {
		b := make([]byte, 40+rng.IntN(4000))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		b[3] = 0x7f // over TCP, of a length that nobody takes
		b[0] = 0xb1
		a.raw(b)
	}},
	{"bytes changed", false, false, func(a attacker, rng *rand.Rand) {
		var md Metadata
		md.Add("key", "value")
		with := make([]byte, md.wireSize())
		md.put(with)
		good := [][]byte{
			request(EchoMethod, 1, []byte("hello")), request(WorkerMethod, 2, make([]byte, 3000)), streamRequest(3, 100, 4),
			crafted(header{kind: kindRequest, method: EchoMethod.id, meta: uint16(len(with))}, with),
			crafted(header{kind: kindPing, id: 9}, nil), crafted(header{kind: kindWindow, id: 3, window: 60}, nil),
		}
		for _, m := range good {
			b := bytes.Clone(m)
			b[rng.IntN(min(len(b), 64))] ^= byte(1 << rng.IntN(8))
			a.message(b)
		}
	}},
}

var slowMethod = NewMethod("test.Slow")

// attackedServer echoes, streams, and has a method that waits until its call is over.
func attackedServer(t testing.TB) *Server {
	s := NewServer(ServerConfig{MaxCalls: 64, Workers: 4, Queue: 32, MaxStreams: 8, MaxUnsent: 64 << 10, MaxResponseBytes: 8 << 20, MaxRequestBytes: 8 << 20})
	for _, err := range []error{
		s.HandleInline(EchoMethod, echo), s.Handle(WorkerMethod, echo),
		s.Handle(slowMethod, func(call *ServerCall) error {
			select {
			case <-call.Context().Done():
			case <-time.After(5 * time.Millisecond):
			}
			return nil
		}),
		s.HandleStream(countMethod, stream60),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestAttacks: hostile clients of every kind come again and again, over both transports.
// Violations end their own connection; a good client beside them is served all the time;
// nothing is held when they have left, and memory does not grow with their number, but for blocks of the pool.
func TestAttacks(t *testing.T) {
	onBothTransports(t, func(t *testing.T, tr Transport, u *underAttack) {
		s := attackedServer(t)
		u.addr = Serve(t, s, tr)
		good := DialTo(t, u.good, u.addr, ClientConfig{})
		for _, c := range attacks {
			t.Run(c.desc, func(t *testing.T) {
				rounds := 12
				if testing.Short() {
					rounds = 4
				}
				seed := rand.Uint64()
				var half uint64
				for i := range rounds {
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					a := u.attack(t)
					defer a.close()
					var gone <-chan struct{}
					if !c.deaf {
						gone = a.hear()
					}
					c.do(a, rng)
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					if _, err := CallOn(t, ctx, good, EchoMethod, []byte("still there?")); err != nil {
						t.Fatalf("seed %d: another client's call: %v", seed, err)
					}
					cancel()
					if c.hangUp {
						select {
						case <-gone:
						case <-time.After(30 * time.Second):
							t.Fatalf("seed %d: the server did not hang up", seed)
						}
					}
					a.close()
					if i == rounds/2 {
						u.settle(t, s)
						half = u.used()
					}
				}
				u.settle(t, s)
				if grown := int64(u.used()) - int64(half); grown > 32<<20 {
					t.Errorf("seed %d: %d bytes more after as many attacks again", seed, grown)
				}
			})
		}
	})
}

// settle waits until the server holds nothing of anybody.
func (u *underAttack) settle(t *testing.T, s *Server) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		conns := len(s.conns)
		s.mu.Unlock()
		held := []int64{s.respSize.Load(), s.load.held.Load(), s.load.streams.Load(), int64(len(s.queue)), int64(conns - 1)}
		if held[0] == 0 && held[1] == 0 && held[2] == 0 && held[3] == 0 && held[4] == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left after the attackers: %d bytes of responses, %d of requests, %d streams, %d queued calls, %d connections",
				held[0], held[1], held[2], held[3], held[4])
		}
	}
}

// used is the memory of the Go heap, and of the server's node.
func (u *underAttack) used() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	n := m.HeapAlloc
	if u.node != nil {
		st := u.node.Stats()
		n += uint64(st.Registered.Local + st.Registered.Writable + st.Registered.Readable)
	}
	return n
}

// fuzzedServer is a server over ByteExpress with a good client, until the test ends.
func fuzzedServer(t testing.TB) (*underAttack, *Server, *Client) {
	fabric := sim.NewFabric(sim.Config{})
	u := &underAttack{node: attackNode(t, fabric, "sim:server"), good: BE{attackNode(t, fabric, "sim:good")}}
	u.attack = u.overBE(attackNode(t, fabric, "sim:bad"))
	s := attackedServer(t)
	u.addr = Serve(t, s, BE{u.node})
	return u, s, DialTo(t, u.good, u.addr, ClientConfig{})
}
