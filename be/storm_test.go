package be_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// TestRandomConfigsInAStorm: two nodes with configurations drawn at random, and goroutines
// that dial, send in every way, give up, publish, receive and close at any time, to sockets
// that are read in each way or not at all. No engine fails, no rule of ownership is
// broken, and all memory comes back. BE_SEED repeats one, BE_SEEDS has it run so many: of
// 400, two found a CTS after the CLOSE of its socket (TestCloseWhileOthersHaveTheirTurn).
func TestRandomConfigsInAStorm(t *testing.T) {
	first, n := uint64(0), uint64(4)
	if s, err := strconv.ParseUint(os.Getenv("BE_SEED"), 0, 64); err == nil {
		first, n = s, 1
	} else if s, err := strconv.ParseUint(os.Getenv("BE_SEEDS"), 0, 64); err == nil {
		n = s
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { storm(t, seed) })
	}
}

func oneOf[T any](r *rand.Rand, l ...T) T { return l[r.IntN(len(l))] }

func stormConfig(r *rand.Rand) be.Config {
	c := be.Config{
		Workers: oneOf(r, 0, 0, 2, 3), SendDepth: oneOf(r, 0, 0, 2, 3, 8), RecvDepth: oneOf(r, 0, 0, 4, 5, 16), EagerBytes: oneOf(r, 0, 256, 1000),
		FragmentBytes: oneOf(r, 0, 4096, 256<<10), PackBytes: oneOf(r, 0, 0, -1, 64, 5000), Backlog: oneOf(r, 0, 1, 5),
		RecvQuotaBytes: oneOf(r, int64(0), 100_000, 3<<20), SocketQuotaBytes: oneOf(r, 0, 1, 50_000), PoolBytes: oneOf(r, int64(0), 0, 40<<20),
		HoldTimeout: oneOf(r, 0, 5*time.Millisecond), WindowTarget: oneOf(r, 0, 20*time.Microsecond), InboundBytes: oneOf(r, 0, 4096),
		NodeWindowBytes: oneOf(r, 0, 1<<20), Linger: oneOf(r, time.Millisecond, 20*time.Millisecond), Keepalive: oneOf(r, 0, 3*time.Millisecond),
	}
	c.Debug.Check = r.IntN(2) == 0
	if r.IntN(3) == 0 {
		c.SharedReceives, c.RecvDepth = oneOf(r, 32, 300), oneOf(r, 4, 8)
	}
	return c
}

func storm(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 999))
	a, b := stormConfig(r), stormConfig(r)
	p := newPairOn(t, sim.Config{}, a, b)
	ctx, cancel := context.WithCancel(limit(t))
	var servers, clients sync.WaitGroup
	mux := be.NewMux(1000, func(s *be.Socket, b []byte, _ error) { s.Node().Free(b) })
	servers.Go(func() { mux.Serve(ctx) })
	servers.Go(func() {
		for i := 0; ; i++ {
			s, err := p.listener.Accept(ctx)
			if err != nil {
				return
			}
			stormServer(ctx, t, &servers, mux, s, i)
		}
	})
	for g := range uint64(16) {
		clients.Go(func() { stormClient(ctx, t, p, rand.New(rand.NewPCG(seed, g))) })
	}
	clients.Wait()
	cancel()
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() { p.listener.Close() })
		closers.Go(func() {
			if err := p.nodes[1].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closers.Wait()
	servers.Wait()
	for i, n := range p.nodes {
		st := n.Stats()
		if st.Failures+st.ProtocolErrors+st.RNR+st.OwnerErrors != 0 || st.Memory.BadFrees+st.Memory.DoubleFrees != 0 {
			t.Errorf("node %d: %+v", i, st)
		}
	}
	if t.Failed() {
		t.Logf("seed %d: %+v\n%+v", seed, a, b)
	}
}

// stormServer takes what comes on a socket in one of the ways, or not at all.
func stormServer(ctx context.Context, t *testing.T, wg *sync.WaitGroup, mux *be.Mux, s *be.Socket, i int) {
	n := s.Node()
	echo := func(b []byte) {
		if s.Post(b, func(err error) {
			if err == nil {
				n.Free(b)
			}
		}) != nil {
			n.Free(b)
		}
	}
	if i%3 == 0 {
		s.SetGet(true)
	}
	switch i % 4 {
	case 0:
		wg.Go(func() { // nobody reads it
			select {
			case <-s.Done():
			case <-time.After(time.Duration(i%10) * time.Millisecond):
			}
			s.Close()
		})
	case 1:
		wg.Go(func() {
			for b, err := s.Recv(ctx); err == nil; b, err = s.Recv(ctx) {
				echo(b)
			}
			s.Close()
		})
	case 2:
		s.OnMessage(func(b []byte, err error) {
			if err == nil {
				echo(b)
			} else {
				s.Close()
			}
		})
	case 3:
		if err := mux.Add(s); err != nil {
			t.Error(err)
		}
	}
}

// stormClient does what comes to its mind.
func stormClient(ctx context.Context, t *testing.T, p *pair, r *rand.Rand) {
	n := p.nodes[1]
	var s *be.Socket
	for range 100 {
		if s != nil && s.Err() != nil {
			if errors.Is(s.Err(), be.ErrProtocol) {
				t.Error(s.Err())
			}
			s.Close()
			s = nil
		}
		short, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(10_000_000)))
		if s == nil {
			while, done := context.WithTimeout(ctx, time.Duration(r.IntN(300))*time.Millisecond)
			s, _ = n.DialWith(while, p.listener.Addr().String(), "storm", be.SocketOptions{Unordered: r.IntN(2) == 0})
			done()
			if s != nil && r.IntN(3) == 0 {
				s.SetGet(true)
			}
		} else {
			s = stormOperation(short, n, s, r)
		}
		cancel()
	}
	if s != nil {
		s.Close()
	}
}

// stormOperation does one thing with a socket, and gives it back unless it is closed.
func stormOperation(ctx context.Context, n *be.Node, s *be.Socket, r *rand.Rand) *be.Socket {
	size := oneOf(r, 0, 1, 63, 256, 257, 8191, 8193, 65536, 65537, 100_000, 300_000, 1<<20)
	b, err := n.Alloc(size)
	if err != nil {
		return s
	}
	free := func(err error) {
		if err == nil {
			n.Free(b)
		}
	}
	switch r.IntN(10) {
	case 0, 1:
		free(s.Send(ctx, b))
	case 2, 3:
		if s.Post(b, free) != nil {
			n.Free(b)
		}
	case 4, 5:
		if s.PostContext(ctx, b, free) != nil {
			n.Free(b)
		}
	case 6:
		k := size / 2
		if s.PostGatherContext(ctx, b[:k], [][]byte{nil, b[k:], b[:k/2]}, func(error) { n.Free(b) }) != nil {
			n.Free(b)
		}
	case 7:
		n.Free(b)
		if m, err := s.Recv(ctx); err == nil {
			n.Free(m)
		}
	case 8:
		pub, err := s.Publish(b)
		s.Close()
		if err == nil {
			<-pub.Done()
		}
		n.Free(b)
		return nil
	case 9:
		n.Free(b)
		n.EngineStats()
		if r.IntN(3) == 0 {
			s.Close()
			return nil
		}
	}
	return s
}
