package be_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// TestSharedQueueFailsInAStorm: the device gives the shared receive queue up again and
// again while many goroutines of many peers dial, send large and small messages in all
// modes, and close in the middle. Every message ends once; afterwards each peer gets
// through, and the memory is as before.
func TestSharedQueueFailsInAStorm(t *testing.T) {
	const peers, callers, failures = 4, 4, 30
	cfg := be.Config{SharedReceives: 64, RecvDepth: 4, Workers: 2, WindowTarget: 1e6, Seed: 1}
	h := &hub{fabric: sim.NewFabric(sim.Config{})}
	dev, node := newNode(t, h.fabric, "hub", cfg)
	h.node = node
	var err error
	if h.listener, err = node.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	for i := range peers {
		_, n := newNode(t, h.fabric, fmt.Sprintf("peer%d", i), be.Config{WindowTarget: 1e6, Seed: 1})
		h.peers = append(h.peers, n)
	}
	before := node.Stats().Memory.InUseBytes

	var wg, servers sync.WaitGroup
	servers.Go(func() {
		for {
			s, err := h.listener.Accept(t.Context())
			if err != nil {
				return
			}
			servers.Go(func() {
				defer s.Close()
				for {
					b, err := s.Recv(t.Context())
					if err != nil {
						return
					}
					if s.Post(b, func(err error) {
						if err == nil {
							node.Free(b)
						}
					}) != nil {
						node.Free(b)
					}
				}
			})
		}
	})
	var storm atomic.Bool
	storm.Store(true)
	var posted, ended, through atomic.Int64
	for i := range peers * callers {
		rng := rand.New(rand.NewPCG(uint64(i), 5))
		wg.Go(func() {
			n := h.peers[i%peers]
			for storm.Load() {
				s, err := n.Dial(t.Context(), h.listener.Addr().String(), "storm")
				if err != nil {
					continue
				}
				s.SetGet(rng.IntN(2) == 0)
				for range rng.IntN(20) {
					b := alloc(t, n, []int{0, 100, 9000, 200_000}[rng.IntN(4)], 0)
					var once atomic.Bool
					if err := s.Post(b, func(err error) {
						if ended.Add(1); !once.CompareAndSwap(false, true) {
							t.Error("a message ended twice")
						}
						if err == nil {
							n.Free(b)
						}
					}); err != nil {
						n.Free(b)
						break
					}
					posted.Add(1)
					if rng.IntN(3) > 0 {
						if b, err := s.Recv(t.Context()); err != nil {
							break
						} else {
							n.Free(b)
							through.Add(1)
						}
					}
				}
				s.Close()
			}
		})
	}
	for range failures {
		was := through.Load()
		eventually(t, "something gets through", func() bool { return through.Load() > was })
		dev.FailSharedReceives()
	}
	storm.Store(false)
	wg.Wait()
	for _, n := range h.peers { // again, if the last failure is only heard of now
		eventually(t, "a message and its answer", func() bool {
			s, err := n.Dial(limit(t), h.listener.Addr().String(), "after")
			if err != nil {
				return false
			}
			defer s.Close()
			b := alloc(t, n, 20_000, 3)
			err = s.Send(limit(t), b)
			n.Free(b)
			if err != nil {
				return false
			}
			m, err := s.Recv(limit(t))
			if err != nil {
				return false
			}
			defer n.Free(m)
			check(t, m, 20_000, 3)
			return true
		})
	}
	for _, n := range h.peers {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	h.listener.Close()
	servers.Wait()
	eventually(t, "each message ended", func() bool { return ended.Load() == posted.Load() })
	eventually(t, "engines are down, memory is as before", func() bool {
		st := node.Stats()
		return st.Engines == 0 && st.Memory.InUseBytes <= before
	})
	t.Logf("%d messages, %d got through", posted.Load(), through.Load())
}
