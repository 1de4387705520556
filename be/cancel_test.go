package be_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// TestPostContext gives up messages of each kind, while they are queued behind a peer
// that takes nothing: done has the context's error, once, and the next one arrives.
func TestPostContext(t *testing.T) {
	p := newPair(t, be.Config{Backlog: 1})
	server, client := p.connect(t, "cancel")
	published := alloc(t, p.nodes[0], 4096, 0)
	pub, err := server.Publish(published)
	if err != nil {
		t.Fatal(err)
	}
	n := p.nodes[1]
	first := alloc(t, n, 10, 1)
	if err := client.Send(limit(t), first); err != nil { // fills the backlog
		t.Fatal(err)
	}
	n.Free(first)
	ended := make(chan error, 1)
	done := func(err error) { ended <- err }
	big, small := alloc(t, n, 1<<20, 2), alloc(t, n, 100, 3)
	for name, post := range map[string]func(context.Context) error{
		"one buffer": func(ctx context.Context) error { return client.PostContext(ctx, alloc(t, n, 100, 4), done) },
		"large":      func(ctx context.Context) error { return client.PostContext(ctx, alloc(t, n, 1<<20, 4), done) },
		"pieces":     func(ctx context.Context) error { return client.PostGatherContext(ctx, small, [][]byte{big}, done) },
	} {
		ctx, cancel := context.WithCancel(context.Background())
		if err := post(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("%s: ended with %v", name, err)
		}
		if err := client.PostPutContext(ctx, pub.Token(), small, done); err != context.Canceled {
			t.Errorf("%s: a post after the end of its context: %v", name, err)
		}
	}
	n.Free(big)
	// A context that ends late changes nothing.
	ctx, cancel := context.WithCancel(context.Background())
	if err := client.PostPutContext(ctx, pub.Token(), small, done); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	cancel()
	last := alloc(t, n, 20, 5)
	if err := client.PostContext(context.Background(), last, done); err != nil {
		t.Fatal(err)
	}
	for i, size := range []int{10, 20} {
		b, err := server.Recv(limit(t))
		if err != nil {
			t.Fatal(err)
		}
		check(t, b, size, byte(1+4*i))
		p.nodes[0].Free(b)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	n.Free(last)
	n.Free(small)
	server.Close()
	<-pub.Done()
	p.nodes[0].Free(published)
}

// TestCancelAtAnyTime ends contexts while messages are on their way: each is told of
// once, and arrives if it is told to.
func TestCancelAtAnyTime(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "cancel")
	rng := rand.New(rand.NewPCG(1, 1))
	var arrived, good, given atomic.Int64
	server.OnMessage(func(b []byte, err error) {
		if err == nil {
			arrived.Add(1)
			p.nodes[0].Free(b)
		}
	})
	n := p.nodes[1]
	var wg sync.WaitGroup
	for range 600 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(300))*time.Microsecond)
		b := alloc(t, n, []int{64, 8192, 100000, 1 << 20}[rng.IntN(4)], 0)
		gather := rng.IntN(2) == 0
		wg.Add(1)
		var told atomic.Bool
		done := func(err error) {
			if told.Swap(true) {
				t.Error("told twice")
			}
			switch {
			case err == nil:
				good.Add(1)
			case errors.Is(err, context.DeadlineExceeded):
				given.Add(1)
			default:
				t.Errorf("ended with %v", err)
			}
			if err == nil || gather {
				n.Free(b)
			}
			cancel()
			wg.Done()
		}
		var err error
		if gather {
			err = client.PostGatherContext(ctx, b[:len(b)/2], [][]byte{b[len(b)/2:]}, done)
		} else {
			err = client.PostContext(ctx, b, done)
		}
		if err != nil { // its time was over at once
			n.Free(b)
			cancel()
			wg.Done()
		}
	}
	wg.Wait()
	eventually(t, "what went well arrives", func() bool { return arrived.Load() == good.Load() })
	t.Logf("%d went well, %d were given up", good.Load(), given.Load())
	if st := n.Stats(); st.Failures+st.ProtocolErrors != 0 {
		t.Errorf("%+v", st.Stats)
	}
}
