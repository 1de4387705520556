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
	"github.com/byteexpress/byteexpress/bemalloc"
)

// TestEverythingEndsAtOnce: while goroutines dial, post messages of each kind that are
// given up, and close sockets on either side, the nodes close, or a device is lost. Each
// post is told of once, no call hangs, and all memory comes back.
func TestEverythingEndsAtOnce(t *testing.T) {
	const rounds, dialers = 12, 16
	var good, bad atomic.Int64
	for round := range uint64(rounds) {
		shared := int(round%2) * 64
		cfg := be.Config{Workers: 1 + int(round%3), SharedReceives: shared, RecvDepth: 4, Linger: 50 * time.Millisecond, StepTimeout: 2 * time.Second, RecvQuotaBytes: 4 << 20}
		p := newPair(t, cfg)
		ctx := limit(t)
		over, stop := context.WithCancel(ctx)
		var wg, posts sync.WaitGroup
		wg.Go(func() {
			for k := 0; ; k++ {
				s, err := p.listener.Accept(over)
				if err != nil {
					return
				}
				switch k % 4 {
				case 0: // does not read
				case 1:
					s.OnMessage(func(b []byte, err error) {
						if err == nil {
							p.nodes[0].Free(b)
							s.Close()
						}
					})
				default:
					if k%4 == 3 {
						s.SetGet(true)
					}
					s.OnMessage(func(b []byte, err error) {
						if err == nil {
							p.nodes[0].Free(b)
						}
					})
				}
			}
		})
		n := p.nodes[1]
		for g := range uint64(dialers) {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(round, g))
				for over.Err() == nil {
					s, err := n.DialWith(over, p.listener.Addr().String(), "x", be.SocketOptions{Unordered: rng.IntN(2) == 0})
					if err != nil {
						if errors.Is(err, be.ErrClosed) {
							return
						}
						continue
					}
					if rng.IntN(2) == 0 {
						s.SetGet(true)
					}
					// One that is waited for, so that dials and what is given up leave the others turns.
					if b, err := n.Alloc(64); err == nil && s.Send(over, b) == nil {
						good.Add(1)
						n.Free(b)
					}
					for range rng.IntN(40) {
						postAnything(t, n, s, rng, &posts, &good, &bad)
					}
					if rng.IntN(3) > 0 {
						s.Close()
					}
				}
			})
		}
		if round > 0 { // the first ends while engines come up
			well, told := good.Load(), good.Load()+bad.Load()
			eventually(t, "a post goes well, and others end", func() bool {
				return good.Load() > well && good.Load()+bad.Load() >= told+50*int64(round)
			})
		}
		if round%4 == 3 {
			p.devs[round/4%2].Remove()
		}
		order := []*be.Node{p.nodes[round%2], p.nodes[1-round%2]}
		var closing sync.WaitGroup
		for _, n := range order {
			closing.Go(func() {
				if err := n.Close(); err != nil && !errors.Is(err, bemalloc.ErrLeak) && round%4 != 3 {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		closing.Wait()
		stop()
		wg.Wait()
		told := make(chan struct{})
		go func() { posts.Wait(); close(told) }()
		select {
		case <-told:
		case <-ctx.Done():
			t.Fatalf("round %d: posts were never told of", round)
		}
		if ctx.Err() != nil {
			t.Fatalf("round %d: a call hung", round)
		}
	}
	t.Logf("%d posts went well, %d did not", good.Load(), bad.Load())
	if good.Load() == 0 || bad.Load() == 0 {
		t.Error("the test shows nothing")
	}
}

// postAnything posts one message, which may be given up some time later.
func postAnything(t *testing.T, n *be.Node, s *be.Socket, rng *rand.Rand, posts *sync.WaitGroup, good, bad *atomic.Int64) {
	b, err := n.Alloc([]int{0, 1, 64, 8192, 8193, 100000, 1 << 20}[rng.IntN(7)])
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(2000))*time.Microsecond)
	kind := rng.IntN(4)
	var told atomic.Bool
	posts.Add(1)
	done := func(err error) {
		if told.Swap(true) {
			t.Error("told twice")
		}
		if err == nil {
			good.Add(1)
		} else {
			bad.Add(1)
		}
		if gathers := kind&1 == 1; err == nil || gathers { // else the node has it
			n.Free(b)
		}
		cancel()
		posts.Done()
	}
	switch kind {
	case 0:
		err = s.PostContext(ctx, b, done)
	case 1:
		err = s.PostGatherContext(ctx, b[:len(b)/3], [][]byte{b[len(b)/3 : len(b)/2], b[len(b)/2:]}, done)
	case 2:
		err = s.PostPutContext(ctx, be.Token{}, b, done) // of no publication: refused or ended
	default:
		err = s.PostGather(b, nil, done)
	}
	if err != nil {
		n.Free(b)
		cancel()
		posts.Done()
	}
}
