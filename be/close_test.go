package be_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

func TestCloseDeliversWhatWasQueued(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "close")
	ctx := limit(t)
	const n = 50
	for i := range n {
		b := alloc(t, p.nodes[1], 1+i*1000, byte(i))
		if !postFreed(t, p.nodes[1], client, b) {
			t.FailNow()
		}
	}
	client.Close()
	if err := client.Send(ctx, alloc(t, p.nodes[1], 1, 0)); !errors.Is(err, be.ErrClosed) {
		t.Errorf("send after close: %v", err)
	}
	for i := range n {
		b, err := server.Recv(ctx)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		check(t, b, 1+i*1000, byte(i))
		p.nodes[0].Free(b)
	}
	if _, err := server.Recv(ctx); !errors.Is(err, be.ErrPeerClosed) {
		t.Errorf("receive after the last: %v", err)
	}
	if err := server.Send(ctx, alloc(t, p.nodes[0], 1, 0)); !errors.Is(err, be.ErrPeerClosed) {
		t.Errorf("send to a closed socket: %v", err)
	}
	server.Close()
	for range 100 { // numbers are used again
		s, c := p.connect(t, "again")
		c.Close()
		if _, err := s.Recv(ctx); !errors.Is(err, be.ErrPeerClosed) {
			t.Fatal(err)
		}
		s.Close()
	}
}

func TestBothSidesCloseAtOnce(t *testing.T) {
	p := newPair(t, be.Config{})
	for range 50 {
		s, c := p.connect(t, "x")
		var wg sync.WaitGroup
		wg.Go(func() { s.Close() })
		wg.Go(func() { c.Close() })
		wg.Wait()
	}
	s, c := p.connect(t, "still works")
	b := alloc(t, p.nodes[1], 100, 1)
	if err := c.Send(limit(t), b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	got, err := s.Recv(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	p.nodes[0].Free(got)
}

func TestNodeCloseSaysGoodbye(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "goodbye")
	ctx := limit(t)
	b := alloc(t, p.nodes[1], 100000, 1)
	if !postFreed(t, p.nodes[1], client, b) {
		t.FailNow()
	}
	closed := make(chan error)
	go func() { closed <- p.nodes[1].Close() }()
	got, err := server.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, 100000, 1)
	p.nodes[0].Free(got)
	if _, err := server.Recv(ctx); !errors.Is(err, be.ErrPeerClosed) {
		t.Errorf("receive after the peer's goodbye: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if err := client.Send(ctx, nil); !errors.Is(err, be.ErrClosed) {
		t.Errorf("send on a closed node: %v", err)
	}
	if _, err := p.nodes[1].Dial(ctx, p.listener.Addr().String(), ""); !errors.Is(err, be.ErrClosed) {
		t.Errorf("dial on a closed node: %v", err)
	}
}

func TestCloseWithBuffersOutNamesThem(t *testing.T) {
	p := newPair(t, be.Config{})
	b := alloc(t, p.nodes[1], 100, 1)
	err := p.nodes[1].Close()
	if err == nil || !strings.Contains(err.Error(), "free every buffer") {
		t.Errorf("close with a buffer out: %v", err)
	}
	p.nodes[1].Free(b)
	if err := p.nodes[1].Close(); err != nil {
		t.Errorf("close after freeing: %v", err)
	}
}

func TestCallbackMode(t *testing.T) {
	p := newPair(t, be.Config{Backlog: 8})
	server, client := p.connect(t, "callback")
	ctx := limit(t)
	const n = 200
	got := make(chan int, n)
	end := make(chan error, 2)
	send := func(i int) {
		b := alloc(t, p.nodes[1], 10+i*100, byte(i))
		if err := client.Send(ctx, b); err != nil {
			t.Fatal(err)
		}
		p.nodes[1].Free(b)
	}
	for i := range 3 { // these wait for the function
		send(i)
	}
	i := 0
	server.OnMessage(func(b []byte, err error) {
		if err != nil {
			end <- err
			return
		}
		check(t, b, 10+i*100, byte(i))
		p.nodes[0].Free(b)
		got <- i
		i++
	})
	for i := 3; i < n; i++ {
		send(i)
	}
	for range n {
		<-got
	}
	client.Close()
	if err := <-end; !errors.Is(err, be.ErrPeerClosed) {
		t.Errorf("last call: %v", err)
	}
	// A function given after the end hears of it too.
	s, c := p.connect(t, "late")
	c.Close()
	if _, err := s.Recv(ctx); err == nil {
		t.Fatal("no error")
	}
	s.OnMessage(func(b []byte, err error) { end <- err })
	if err := <-end; !errors.Is(err, be.ErrPeerClosed) {
		t.Errorf("late function: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	p := newPair(t, be.Config{MaxMessage: 1 << 20})
	_, client := p.connect(t, "args")
	ctx := limit(t)
	if _, err := p.nodes[1].Alloc(1<<20 + 1); !errors.Is(err, be.ErrTooLarge) || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("alloc beyond the limit: %v", err)
	}
	if _, err := p.nodes[1].Alloc(-1); err == nil {
		t.Error("alloc of -1 bytes gave no error")
	}
	if err := client.Send(ctx, make([]byte, 10)); !errors.Is(err, be.ErrNotRegistered) {
		t.Errorf("send of Go memory: %v", err)
	}
	if err := client.Post(make([]byte, 10), nil); !errors.Is(err, be.ErrNotRegistered) {
		t.Errorf("post of Go memory: %v", err)
	}
	if _, err := p.nodes[1].Dial(ctx, p.listener.Addr().String(), strings.Repeat("x", 201)); err == nil {
		t.Error("a service name of 201 bytes was taken")
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := client.Send(canceled, alloc(t, p.nodes[1], 10, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("send with a canceled context: %v", err)
	}
	if _, err := client.Recv(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("receive with a canceled context: %v", err)
	}
	for _, cfg := range []be.Config{{RecvDepth: 3}, {SendDepth: 1}, {WindowBytes: 1000, FragmentBytes: 2000}, {MaxMessage: -1}, {Port: 300}} {
		if n, err := be.NewNode(nil, cfg); err == nil {
			n.Close()
			t.Errorf("config %+v was taken", cfg)
		}
	}
}

func TestMessageOf2GiBIsRefused(t *testing.T) {
	p := newPair(t, be.Config{})
	_, err := p.nodes[0].Alloc(1 << 31)
	if !errors.Is(err, be.ErrTooLarge) || !strings.Contains(err.Error(), "2147483648") || !strings.Contains(err.Error(), "2147483647") {
		t.Errorf("2^31 bytes: %v", err)
	}
}

// TestCloseDuringDials closes nodes while others dial them and are dialed: no
// call hangs, and nothing is left.
func TestCloseDuringDials(t *testing.T) {
	for round := range 10 {
		p := newPair(t, be.Config{Linger: 100 * time.Millisecond, StepTimeout: 2 * time.Second})
		other, err := p.nodes[1].Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx := limit(t)
		var wg sync.WaitGroup
		for i, l := range []*be.Listener{other, p.listener} {
			for range 4 {
				wg.Go(func() {
					for ctx.Err() == nil {
						s, err := p.nodes[i].Dial(ctx, l.Addr().String(), "x")
						if errors.Is(err, be.ErrClosed) {
							return
						}
						if err == nil {
							s.Close()
						}
					}
				})
			}
			wg.Go(func() {
				for {
					if _, err := l.Accept(ctx); err != nil {
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(round) * 3 * time.Millisecond)
		for _, n := range p.nodes {
			wg.Go(func() {
				if err := n.Close(); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		if ctx.Err() != nil {
			t.Fatalf("round %d: a call hung", round)
		}
	}
}
