package be_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// serveMux runs a Mux on some goroutines until the test ends.
func serveMux(t testing.TB, m *be.Mux, goroutines int) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			if err := m.Serve(ctx); err != context.Canceled {
				t.Errorf("serve: %v", err)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// connectInto opens n sockets from the second node to the first, which has them in a
// Mux.
func (p *pair) connectInto(t testing.TB, m *be.Mux, n int) (servers, clients []*be.Socket) {
	t.Helper()
	ctx := limit(t)
	for range n {
		client, err := p.nodes[1].Dial(ctx, p.listener.Addr().String(), "many")
		if err != nil {
			t.Fatal(err)
		}
		server, err := p.listener.Accept(ctx)
		if err == nil {
			err = m.Add(server)
		}
		if err != nil {
			t.Fatal(err)
		}
		servers, clients = append(servers, server), append(clients, client)
	}
	return servers, clients
}

// TestMux: more sockets than goroutines; in order, one at a time a socket, and the
// end of each, once.
func TestMux(t *testing.T) {
	const sockets, messages, goroutines = 100, 60, 3
	p := newPair(t, be.Config{Backlog: 8})
	type state struct {
		busy atomic.Bool
		next uint64
		ends int
	}
	var states sync.Map
	var left sync.WaitGroup
	left.Add(sockets)
	m := be.NewMux(sockets, func(s *be.Socket, b []byte, err error) {
		v, _ := states.LoadOrStore(s, new(state))
		st := v.(*state)
		if st.busy.Swap(true) {
			t.Error("two goroutines serve one socket")
		}
		defer st.busy.Store(false)
		if err != nil {
			if !errors.Is(err, be.ErrPeerClosed) || b != nil || st.next != messages {
				t.Errorf("end after %d messages: %v", st.next, err)
			}
			if st.ends++; st.ends == 1 {
				left.Done()
			}
			return
		}
		if n := binary.LittleEndian.Uint64(b); n != st.next {
			t.Errorf("message %d came as number %d", n, st.next)
		}
		st.next++
		s.Node().Free(b)
	})
	serveMux(t, m, goroutines)
	servers, clients := p.connectInto(t, m, sockets)
	ctx := limit(t)
	var wg sync.WaitGroup
	for i, s := range clients {
		wg.Go(func() {
			for k := range messages {
				size := 8 + k
				if (i+k)%10 == 0 {
					size = 20000
				}
				b := alloc(t, p.nodes[1], size, 0)
				binary.LittleEndian.PutUint64(b, uint64(k))
				if err := s.Send(ctx, b); err != nil {
					t.Error(err)
					return
				}
				p.nodes[1].Free(b)
			}
			s.Close()
		})
	}
	wg.Wait()
	left.Wait()
	if err := m.Add(servers[0]); !errors.Is(err, be.ErrInMux) {
		t.Errorf("added again: %v", err)
	}
}

// TestMuxHoldsBackOnePeer: a handler that blocks stops its own socket's sender, at
// the backlog, and no other socket.
func TestMuxHoldsBackOnePeer(t *testing.T) {
	p := newPair(t, be.Config{Backlog: 4})
	slow, slowClient := p.connect(t, "slow")
	fast, fastClient := p.connect(t, "fast")
	gate, came := make(chan struct{}), make(chan struct{}, 100)
	m := be.NewMux(2, func(s *be.Socket, b []byte, err error) {
		p.nodes[0].Free(b)
		if s == slow && err == nil {
			<-gate
		}
		if s == fast {
			came <- struct{}{}
		}
	})
	for _, s := range []*be.Socket{slow, fast} {
		if err := m.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	serveMux(t, m, 2)
	var sent atomic.Int32
	for range 20 {
		b := alloc(t, p.nodes[1], 10, 0)
		if err := slowClient.Post(b, func(err error) {
			if err == nil {
				sent.Add(1)
				p.nodes[1].Free(b)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		b := alloc(t, p.nodes[1], 10, 0)
		if err := fastClient.Send(limit(t), b); err != nil {
			t.Fatal(err)
		}
		p.nodes[1].Free(b)
		<-came
	}
	// One is being handled and not counted as taken before half a backlog is.
	if n := sent.Load(); n > 4 {
		t.Errorf("%d messages went to a socket that takes none, with a backlog of 4", n)
	}
	close(gate)
	eventually(t, "all sent", func() bool { return sent.Load() == 20 })
}

func TestMuxLimits(t *testing.T) {
	p := newPair(t, be.Config{})
	first, firstClient := p.connect(t, "first")
	second, _ := p.connect(t, "second")
	ended := make(chan error, 2)
	m := be.NewMux(1, func(s *be.Socket, b []byte, err error) {
		p.nodes[0].Free(b)
		if err != nil {
			ended <- err
		}
	})
	// What came before Add counts too, and so does an end.
	b := alloc(t, p.nodes[1], 3, 0)
	if err := firstClient.Send(limit(t), b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	firstClient.Close()
	<-first.Done()
	if err := m.Add(first); err != nil {
		t.Fatal(err)
	}
	var cfg *be.ConfigError
	if err := m.Add(second); !errors.As(err, &cfg) {
		t.Errorf("one too many: %v", err)
	}
	serveMux(t, m, 1)
	if err := <-ended; !errors.Is(err, be.ErrPeerClosed) {
		t.Errorf("ended with %v", err)
	}
	// It left: there is room. The end by our own Close is told too.
	if err := m.Add(second); err != nil {
		t.Fatal(err)
	}
	second.Close()
	if err := <-ended; !errors.Is(err, be.ErrClosed) {
		t.Errorf("ended with %v", err)
	}
}

func TestMuxAllocatesNothing(t *testing.T) {
	if checked() {
		t.Skip("the race detector and BEMALLOC_DEBUG allocate")
	}
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "allocs")
	came := make(chan struct{}, 1)
	m := be.NewMux(1, func(s *be.Socket, b []byte, err error) {
		p.nodes[0].Free(b)
		came <- struct{}{}
	})
	if err := m.Add(server); err != nil {
		t.Fatal(err)
	}
	serveMux(t, m, 2)
	b := alloc(t, p.nodes[1], 64, 0)
	defer p.nodes[1].Free(b)
	ctx := context.Background()
	op := func() {
		if err := client.Send(ctx, b); err != nil {
			t.Fatal(err)
		}
		<-came
	}
	for range 300 {
		op()
	}
	if n := testing.AllocsPerRun(500, op); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// TestMuxUnserved: a node closes though messages wait in a Mux that nobody serves any
// more, of sockets that are open and of closed ones.
func TestMuxUnserved(t *testing.T) {
	p := newPair(t, be.Config{})
	came := make(chan struct{})
	m := be.NewMux(2, func(s *be.Socket, b []byte, err error) {
		s.Node().Free(b)
		came <- struct{}{}
	})
	servers, clients := p.connectInto(t, m, 2)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { m.Serve(ctx) })
	for i := range 4 {
		if i == 1 {
			cancel()
			wg.Wait()
		}
		for _, c := range clients {
			b := alloc(t, p.nodes[1], 10, 0)
			if err := c.Send(limit(t), b); err != nil {
				t.Fatal(err)
			}
			p.nodes[1].Free(b)
			if i == 0 {
				<-came
			}
		}
	}
	servers[0].Close()
	for _, n := range p.nodes {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}
