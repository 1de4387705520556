package be_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// echo answers every message on every socket of a listener with the same bytes,
// in callback mode.
func echo(t testing.TB, n *be.Node, l *be.Listener) {
	go func() {
		for {
			s, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			s.OnMessage(func(b []byte, err error) {
				if err != nil {
					return
				}
				out, err := n.Alloc(len(b))
				if err != nil {
					t.Error(err)
					return
				}
				copy(out, b)
				n.Free(b)
				if err := s.Post(out, func(err error) {
					if err == nil {
						n.Free(out)
					}
				}); err != nil {
					n.Free(out)
				}
			})
		}
	}()
}

func TestThousandSocketsOnOneEngine(t *testing.T) {
	p := newPair(t, be.Config{})
	echo(t, p.nodes[0], p.listener)
	ctx := limit(t)
	const sockets = 1000
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := g; i < sockets; i += 32 {
				s, err := p.nodes[1].Dial(ctx, p.listener.Addr().String(), fmt.Sprint(i))
				if err != nil {
					t.Error(err)
					return
				}
				for _, size := range []int{0, 100, 20000} {
					b := alloc(t, p.nodes[1], size, byte(i))
					if err := s.Send(ctx, b); err != nil {
						t.Errorf("socket %d: send: %v", i, err)
						return
					}
					p.nodes[1].Free(b)
					got, err := s.Recv(ctx)
					if err != nil {
						t.Errorf("socket %d: receive: %v", i, err)
						return
					}
					check(t, got, size, byte(i))
					p.nodes[1].Free(got)
				}
				if i%2 == 0 {
					s.Close()
				}
			}
		})
	}
	wg.Wait()
	st := p.nodes[1].Stats()
	if st.Engines != 1 {
		t.Errorf("%d engines, want 1", st.Engines)
	}
	if st.Requests == 0 || st.Doorbells == 0 || st.RNR != 0 || st.Failures != 0 {
		t.Errorf("stats %+v", st)
	}
}

// TestOrderPerSocket has many goroutines send numbered messages of mixed sizes
// through one socket each; each socket must see its numbers in order.
func TestOrderPerSocket(t *testing.T) {
	p := newPair(t, be.Config{Backlog: 16})
	ctx := limit(t)
	const sockets, messages = 8, 400
	var wg sync.WaitGroup
	for i := range sockets {
		server, client := p.connect(t, fmt.Sprint(i))
		wg.Go(func() {
			for k := range messages {
				size := 8 + (k*7919+i*31)%40000
				if k%5 != 0 {
					size = 8 + k%200
				}
				b := alloc(t, p.nodes[1], size, byte(k))
				binary.LittleEndian.PutUint64(b, uint64(k))
				if !postFreed(t, p.nodes[1], client, b) {
					return
				}
			}
		})
		wg.Go(func() {
			for k := range messages {
				b, err := server.Recv(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if got := binary.LittleEndian.Uint64(b); got != uint64(k) {
					t.Errorf("socket %d: message %d came as number %d", i, got, k)
					return
				}
				p.nodes[0].Free(b)
			}
		})
	}
	wg.Wait()
}

// TestManyReceivers has 32 goroutines share Send and Recv of one socket.
func TestManyReceivers(t *testing.T) {
	p := newPair(t, be.Config{Backlog: 8})
	server, client := p.connect(t, "shared")
	ctx := limit(t)
	const goroutines, each = 32, 100
	var seen [goroutines * each]atomic.Int32
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for k := range each {
				b := alloc(t, p.nodes[1], 8+(k%3)*9000, 0)
				binary.LittleEndian.PutUint64(b, uint64(g*each+k))
				if err := client.Send(ctx, b); err != nil {
					t.Error(err)
					return
				}
				p.nodes[1].Free(b)
			}
		})
		wg.Go(func() {
			for range each {
				b, err := server.Recv(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				seen[binary.LittleEndian.Uint64(b)].Add(1)
				p.nodes[0].Free(b)
			}
		})
	}
	wg.Wait()
	for i := range seen {
		if n := seen[i].Load(); n != 1 {
			t.Fatalf("message %d was received %d times", i, n)
		}
	}
}

func TestSendDeadlineWithoutReader(t *testing.T) {
	p := newPair(t, be.Config{Backlog: 4, RecvQuotaBytes: 1 << 20})
	server, client := p.connect(t, "slow")
	n := 0
	for wait := 5 * time.Minute; ; wait = 50 * time.Millisecond { // the first one goes out
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		b := alloc(t, p.nodes[1], 100000, byte(n))
		err := client.Send(ctx, b)
		cancel()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("send: %v", err)
			}
			break
		}
		p.nodes[1].Free(b)
		n++
	}
	if n == 0 || n > 4 {
		t.Errorf("%d messages went out before the backlog of 4 stopped them", n)
	}
	// The socket still works: what was sent arrives, and so does what follows.
	ctx := limit(t)
	for i := range n {
		b, err := server.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		check(t, b, 100000, byte(i))
		p.nodes[0].Free(b)
	}
	b := alloc(t, p.nodes[1], 5, 99)
	if err := client.Send(ctx, b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	b, err := server.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	check(t, b, 5, 99)
	p.nodes[0].Free(b)
}

// TestQuotaHoldsBack: with a quota of one message, a second waits for the first
// to be taken, and other sockets' small messages pass.
func TestQuotaHoldsBack(t *testing.T) {
	p := newPair(t, be.Config{RecvQuotaBytes: 300000})
	big, bigClient := p.connect(t, "big")
	small, smallClient := p.connect(t, "small")
	ctx := limit(t)
	for i := range 3 {
		b := alloc(t, p.nodes[1], 200000, byte(i))
		if !postFreed(t, p.nodes[1], bigClient, b) {
			t.FailNow()
		}
	}
	for i := range 20 {
		b := alloc(t, p.nodes[1], 1000, byte(i))
		if err := smallClient.Send(ctx, b); err != nil {
			t.Fatal(err)
		}
		p.nodes[1].Free(b)
		b, err := small.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		check(t, b, 1000, byte(i))
		p.nodes[0].Free(b)
	}
	for i := range 3 {
		b, err := big.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		check(t, b, 200000, byte(i))
		p.nodes[0].Free(b)
	}
	if st := p.nodes[0].Stats(); st.Held == 0 {
		t.Error("nothing was held back")
	}
}

func TestCancelLeavesTheSocketWhole(t *testing.T) {
	p := newPair(t, be.Config{RecvQuotaBytes: 100000})
	server, client := p.connect(t, "cancel")
	ctx := limit(t)
	// The first fills the quota; the second waits for it and is canceled.
	b := alloc(t, p.nodes[1], 90000, 1)
	if err := client.Send(ctx, b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	short, cancel := context.WithCancel(ctx)
	sent := make(chan error)
	second := alloc(t, p.nodes[1], 80000, 2)
	go func() { sent <- client.Send(short, second) }()
	eventually(t, "the second waits", func() bool { return p.nodes[0].Stats().Held > 0 })
	cancel()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Fatalf("send: %v", err)
	}
	b = alloc(t, p.nodes[1], 10, 3)
	if err := client.Send(ctx, b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	for _, want := range []struct {
		size int
		seed byte
	}{{90000, 1}, {10, 3}} {
		got, err := server.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got, want.size, want.seed)
		p.nodes[0].Free(got)
	}
	if st := p.nodes[0].Stats(); st.Canceled != 1 {
		t.Errorf("%d messages were canceled, want 1", st.Canceled)
	}
}
