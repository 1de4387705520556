package be_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// BenchmarkManyPeers has one node send small messages to a thousand others, each by an
// engine of its own, with receives of their own or shared ones. It tells what an engine
// costs the one node in registered and other memory, how long it takes to open, how
// even the peers were served at half time, and the rate beside that to one peer.
func BenchmarkManyPeers(b *testing.B) {
	for _, peers := range []int{1, 100, 1000} {
		for _, shared := range []int{0, 10000} {
			b.Run(fmt.Sprintf("peers=%d/shared=%d", peers, shared), func(b *testing.B) {
				h := newHub(b, peers, be.Config{CQEntries: 1 << 17, SharedReceives: shared, Backlog: 1 << 12}, be.Config{CQEntries: 256, Backlog: 1 << 12})
				for _, n := range h.peers { // each has its first block of memory before a dial
					n.Free(alloc(b, n, 64, 0))
				}
				registered, used := h.node.Stats().Memory.InUseBytes, heap()
				start := time.Now()
				socks := make([]*be.Socket, peers)
				counts := make([]atomic.Int64, peers)
				var total, half, all atomic.Int64
				var index atomic.Pointer[float64]
				done := make(chan struct{})
				for i := range socks {
					var client *be.Socket
					socks[i], client = h.dial(b, i)
					n := h.peers[i]
					client.OnMessage(func(m []byte, err error) {
						if err != nil {
							return
						}
						n.Free(m)
						counts[i].Add(1)
						switch total.Add(1) {
						case half.Load():
							v := make([]int, peers)
							for k := range v {
								v[k] = int(counts[k].Load())
							}
							f := fairness(v)
							index.Store(&f)
						case all.Load():
							close(done)
						}
					})
				}
				open := time.Since(start)
				st := h.node.Stats()
				opened := st.Memory.InUseBytes
				heaped := heap() - used
				each := max(400, 200000/peers)
				var took time.Duration
				for b.Loop() {
					done = make(chan struct{})
					for i := range counts {
						counts[i].Store(0)
					}
					total.Store(0)
					half.Store(int64(each * peers / 2))
					all.Store(int64(each * peers))
					start := time.Now()
					free := func(err error) {
						if err != nil {
							b.Errorf("post: %v", err)
						}
					}
					slots := make(chan struct{}, 64*peers)
					for range each {
						for _, s := range socks {
							slots <- struct{}{}
							m := alloc(b, h.node, 64, 0)
							if err := s.Post(m, func(err error) { free(err); h.node.Free(m); <-slots }); err != nil {
								b.Fatal(err)
							}
						}
					}
					<-done
					took += time.Since(start)
				}
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/float64(each*peers), "ns/msg")
				b.ReportMetric(*index.Load(), "jain")
				b.ReportMetric(float64(open.Nanoseconds())/1e3/float64(peers), "open-us/engine")
				b.ReportMetric(float64(opened-registered)/float64(peers), "registered-B/engine")
				b.ReportMetric(heaped/float64(peers), "heap-B/both-ends")
				if shared > 0 {
					b.ReportMetric(float64(registered), "registered-B/shared")
				}
				b.ReportMetric(0, "ns/op")
				if st = h.node.Stats(); st.RNR != 0 {
					b.Errorf("%d messages found no receive", st.RNR)
				}
				runtime.KeepAlive(socks)
			})
		}
	}
}

// BenchmarkOpenEngine opens an engine for each of 64 workers of a peer, and tells what
// one takes to open, and of memory: both of its ends in Go's heap, and one of them in
// registered memory.
func BenchmarkOpenEngine(b *testing.B) {
	const engines = 64
	for _, shared := range []int{0, 4096} {
		b.Run(fmt.Sprintf("shared=%d", shared), func(b *testing.B) {
			var took time.Duration
			var used, registered float64
			for b.Loop() {
				p := newPairOn(b, simDefaults, be.Config{SharedReceives: shared}, be.Config{Workers: engines, CQEntries: 512})
				before, memory := heap(), p.nodes[0].Stats().Memory.InUseBytes
				start := time.Now()
				for range engines {
					p.connect(b, "engine")
				}
				took += time.Since(start)
				used = (heap() - before) / engines
				registered = float64(p.nodes[0].Stats().Memory.InUseBytes-memory) / engines
				if st := p.nodes[0].Stats(); st.Engines != engines {
					b.Fatalf("%d engines", st.Engines)
				}
			}
			b.ReportMetric(float64(took.Nanoseconds())/1e3/float64(b.N)/engines, "us/engine")
			b.ReportMetric(used, "heap-B/engine")
			b.ReportMetric(registered, "registered-B/engine")
			b.ReportMetric(0, "ns/op")
		})
	}
}
