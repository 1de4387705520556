package be_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// TestWorkers: nodes of different numbers of workers, that dial each other at the same
// time, have one engine for each pair of workers, and every socket works.
func TestWorkers(t *testing.T) {
	for _, n := range []struct{ a, b, engines int }{{1, 1, 1}, {3, 2, 6}, {1, 4, 4}, {2, 2, 4}} {
		t.Run(fmt.Sprintf("%d and %d", n.a, n.b), func(t *testing.T) {
			p := newPairOn(t, simDefaults, be.Config{Workers: n.a, Spin: time.Millisecond}, be.Config{Workers: n.b, LockThreads: true})
			other, err := p.nodes[1].Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			const each = 16
			m := be.NewMux(2*each, func(s *be.Socket, b []byte, err error) {
				if err != nil {
					return
				}
				n := s.Node()
				if s.Post(b, func(err error) {
					if err == nil {
						n.Free(b)
					}
				}) != nil {
					n.Free(b)
				}
			})
			serveMux(t, m, 2)
			var wg sync.WaitGroup
			for i, l := range []*be.Listener{p.listener, other} {
				wg.Go(func() {
					for range each {
						s, err := l.Accept(limit(t))
						if err == nil {
							err = m.Add(s)
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
				from := p.nodes[1-i]
				for k := range each {
					wg.Go(func() {
						ctx := limit(t)
						s, err := from.Dial(ctx, l.Addr().String(), "x")
						if err != nil {
							t.Error(err)
							return
						}
						for _, size := range []int{0, 100, 8192, 300000} {
							b := alloc(t, from, size, byte(k))
							if err := s.Send(ctx, b); err != nil {
								t.Error(err)
								return
							}
							from.Free(b)
							if b, err = s.Recv(ctx); err != nil {
								t.Error(err)
								return
							}
							check(t, b, size, byte(k))
							from.Free(b)
						}
					})
				}
			}
			wg.Wait()
			for i, node := range p.nodes {
				if st := node.Stats(); st.Engines != n.engines || st.Sockets != 2*each || st.RNR != 0 || st.Failures != 0 {
					t.Errorf("node %d: %d engines with %d sockets, want %d with %d; %d RNR, %d failures",
						i, st.Engines, st.Sockets, n.engines, 2*each, st.RNR, st.Failures)
				}
			}
		})
	}
}

// TestWorkersLoseTheirPeer: the sockets of every worker end, and new ones come up on
// all workers.
func TestWorkersLoseTheirPeer(t *testing.T) {
	m := newMemory() // whose address nobody else can take meanwhile
	p := newPair(t, be.Config{Workers: 3, Bootstrap: m})
	var sockets []*be.Socket
	for range 6 {
		_, c := p.connect(t, "first")
		sockets = append(sockets, c)
	}
	addr := p.listener.Addr().String()
	if err := p.nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	for i, s := range sockets {
		if _, err := s.Recv(limit(t)); !errors.Is(err, be.ErrPeerClosed) {
			t.Errorf("socket %d: %v", i, err)
		}
	}
	_, again := newNode(t, p.fabric, "sim2", be.Config{Workers: 2, Bootstrap: m})
	l, err := again.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	p.nodes[0], p.listener = again, l
	for range 6 {
		p.connect(t, "second")
	}
	if st := p.nodes[1].Stats(); st.Engines != 6 {
		t.Errorf("%d engines, want 6", st.Engines)
	}
}

// TestWorkersOnALostDevice: all of them notice.
func TestWorkersOnALostDevice(t *testing.T) {
	p := newPair(t, be.Config{Workers: 3})
	var sockets []*be.Socket
	for range 6 {
		_, c := p.connect(t, "x")
		sockets = append(sockets, c)
	}
	p.devs[1].Remove()
	for i, s := range sockets {
		if _, err := s.Recv(limit(t)); err == nil {
			t.Errorf("socket %d has a message", i)
		}
	}
}

// TestHostileLane: a dialer that names a lane that cannot be is refused.
func TestHostileLane(t *testing.T) {
	p := newPair(t, be.Config{Workers: 2})
	for _, lane := range []int{-1, 64, 1 << 40} {
		c, err := net.Dial("tcp", p.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(frame(with(peerHello(), "lane", lane)))
		h, err := readFrame(c)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := h["refused"].(map[string]any); r == nil || !strings.Contains(fmt.Sprint(r["text"]), fmt.Sprintf("lane %d", lane)) {
			t.Errorf("lane %d: %v", lane, h["refused"])
		}
	}
	p.connect(t, "the node goes on")
}

// TestSocketsSpreadOverPairs: each pair of a worker of either side has an engine, and
// as many sockets as any other.
func TestSocketsSpreadOverPairs(t *testing.T) {
	for _, n := range [][2]int{{3, 2}, {2, 4}, {1, 3}} {
		p := newPairOn(t, simDefaults, be.Config{Workers: n[0]}, be.Config{Workers: n[1]})
		pairs := n[0] * n[1]
		for range 2 * pairs {
			server, client := p.connect(t, "pair")
			exchange(t, server, client, 100, 1)
		}
		for i, node := range p.nodes {
			seen := map[[2]int]int{}
			for _, e := range node.EngineStats() {
				seen[[2]int{e.Worker, e.Lane}] += e.Sockets
			}
			for pair, sockets := range seen {
				if sockets != 2 {
					t.Errorf("%v workers, node %d: pair %v has %d sockets", n, i, pair, sockets)
				}
			}
			if len(seen) != pairs {
				t.Errorf("%v workers, node %d: %d pairs", n, i, len(seen))
			}
		}
	}
}
