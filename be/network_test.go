package be_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// memory is a Bootstrap inside the process: lines are pipes.
type memory struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
	lines     []*memoryLine
	gid       verbs.GID // that lines say they go by
}

func newMemory() *memory { return &memory{listeners: map[string]*memoryListener{}} }

type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }

// memoryLine is one end of a pipe that remembers what was written.
type memoryLine struct {
	net.Conn
	gid  verbs.GID
	addr memoryAddr

	mu   sync.Mutex
	said []byte
}

func (l *memoryLine) SGID() verbs.GID      { return l.gid }
func (l *memoryLine) RemoteAddr() net.Addr { return l.addr }
func (l *memoryLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.said = append(l.said, b...)
	l.mu.Unlock()
	return l.Conn.Write(b)
}

func (l *memoryLine) heard(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(string(l.said), text)
}

type memoryListener struct {
	m     *memory
	addr  memoryAddr
	lines chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (m *memory) Listen(addr string) (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &memoryListener{m: m, addr: memoryAddr(addr), lines: make(chan net.Conn), done: make(chan struct{})}
	m.listeners[addr] = l
	return l, nil
}

var errNobody = errors.New("nobody is there")

func (m *memory) Dial(ctx context.Context, addr string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[addr]
	m.mu.Unlock()
	if l == nil {
		return nil, errNobody
	}
	a, b := net.Pipe()
	x, y := &memoryLine{Conn: a, gid: m.gid, addr: l.addr}, &memoryLine{Conn: b, gid: m.gid, addr: "client"}
	select {
	case l.lines <- y:
	case <-l.done:
		return nil, errNobody
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m.mu.Lock()
	m.lines = append(m.lines, x, y)
	m.mu.Unlock()
	return x, nil
}

func (l *memoryListener) Addr() net.Addr { return l.addr }
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.lines:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Nodes whose lines are not TCP connections bring engines up, tell the end of one, and
// take the GID that the line goes by.
func TestBootstrapOfAnotherKind(t *testing.T) {
	ctx := limit(t)
	m := newMemory()
	p := &pair{fabric: sim.NewFabric(simDefaults)}
	for i := range p.nodes {
		p.devs[i], p.nodes[i] = newNode(t, p.fabric, string(rune('a'+i)), be.Config{Bootstrap: m})
	}
	var err error
	if p.listener, err = p.nodes[0].Listen("over there"); err != nil {
		t.Fatal(err)
	}
	if a := p.listener.Addr(); a.Network() != "memory" || a.String() != "over there" {
		t.Errorf("address %v of %s", a, a.Network())
	}
	for i, gid := range []string{`"gid":"::ffff:`, `"gid":"fe80::`} {
		server, client := p.connect(t, "x")
		exchange(t, client, server, 100000, 3)
		lines := m.lines[len(m.lines)-2:]
		if len(m.lines) != 2*(i+1) || !lines[0].heard(gid) {
			t.Errorf("%d lines, hello %s", len(m.lines), lines[0].said)
		}
		// The end of the line is the end of the peer.
		lines[i%2].Close()
		for _, s := range []*be.Socket{server, client} {
			if _, err := s.Recv(ctx); !errors.Is(err, be.ErrPeerLost) && !errors.Is(err, be.ErrPeerClosed) {
				t.Errorf("receive after the line's end: %v", err)
			}
			s.Close()
		}
		eventually(t, "no engine left", func() bool { return p.nodes[0].Stats().Engines+p.nodes[1].Stats().Engines == 0 })
		m.gid = linkLocal(t, p.devs[1]) // the dialer's next line goes by it
	}
	_, err = p.nodes[1].Dial(ctx, "nowhere", "x")
	var step *be.StepError
	if !errors.Is(err, errNobody) || !errors.As(err, &step) || step.Step != "connect" {
		t.Errorf("dial: %v", err)
	}
}

// linkLocal is a device's link-local GID.
func linkLocal(t *testing.T, dev verbs.Device) verbs.GID {
	t.Helper()
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.Close()
	gids, err := ctx.GIDs(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gids {
		if g.GID.IsLinkLocal() {
			return g.GID
		}
	}
	t.Fatalf("no link-local GID: %v", gids)
	return verbs.GID{}
}
