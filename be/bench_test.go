package be_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// BenchmarkRoundTrip is a request of 64 bytes and an answer of size bytes, with
// some requests outstanding, both sides in callback mode.
func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 8 << 10, 64 << 10, 1 << 20} {
		for _, outstanding := range []int{1, 64} {
			b.Run(fmt.Sprintf("size=%d/outstanding=%d", size, outstanding), func(b *testing.B) {
				p := newPair(b, be.Config{})
				server, client := p.connect(b, "bench")
				server.OnMessage(answer(p.nodes[0], server, size))
				tokens := make(chan struct{}, outstanding)
				client.OnMessage(func(m []byte, err error) {
					if err == nil {
						p.nodes[1].Free(m)
						tokens <- struct{}{}
					}
				})
				for range outstanding {
					tokens <- struct{}{}
				}
				done := freer(p.nodes[1])
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					<-tokens
					m, err := p.nodes[1].Alloc(64)
					if err != nil {
						b.Fatal(err)
					}
					if err := client.Post(m, done(m)); err != nil {
						b.Fatal(err)
					}
				}
				for range outstanding {
					<-tokens
				}
				st := p.nodes[0].Stats()
				b.ReportMetric(float64(st.Requests)/float64(st.Doorbells), "requests/doorbell")
			})
		}
	}
}

// freer gives done functions that free their buffer. The benchmark's own
// allocation is that closure.
func freer(n *be.Node) func([]byte) func(error) {
	return func(m []byte) func(error) {
		return func(err error) {
			if err == nil {
				n.Free(m)
			}
		}
	}
}

func answer(n *be.Node, s *be.Socket, size int) func([]byte, error) {
	done := freer(n)
	return func(m []byte, err error) {
		if err != nil {
			return
		}
		n.Free(m)
		out, err := n.Alloc(size)
		if err != nil {
			panic(err)
		}
		if s.Post(out, done(out)) != nil {
			n.Free(out)
		}
	}
}

// BenchmarkSend is one goroutine that sends and one that receives.
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			p := newPair(b, be.Config{})
			server, client := p.connect(b, "bench")
			ctx := context.Background()
			go sink(p.nodes[0], server)
			m, err := p.nodes[1].Alloc(size)
			if err != nil {
				b.Fatal(err)
			}
			defer p.nodes[1].Free(m)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := client.Send(ctx, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
