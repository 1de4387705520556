package ps_test

import (
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/ps"
)

func BenchmarkFetch(b *testing.B) {
	for _, dim := range []int{64, 256} { // copied, and lent
		benchmarkFetches(b, dim)
	}
}

func benchmarkFetches(b *testing.B, dim int) {
	keys := 1 << 22 / dim
	for _, tr := range []transport{tcp, simTransport(b)} {
		for _, size := range []int{1 << 10, 16 << 10, 128 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("dim=%d/transport=%s/shards=4/size=%d/outstanding=32", dim, tr.name, size), func(b *testing.B) {
				shards, c := tr.start(b, 4, ps.Config{Dim: dim, InitialScale: 1})
				for _, s := range shards {
					if err := s.Create(keyRange(keys)); err != nil {
						b.Fatal(err)
					}
				}
				benchmarkFetch(b, c, size/(4*dim), keys, 32)
			})
		}
	}
}

// benchmarkFetch keeps fetches of n random rows outstanding.
func benchmarkFetch(b *testing.B, c *ps.Client, n, keys, outstanding int) {
	b.SetBytes(int64(4 * n * c.Dim()))
	b.ReportAllocs()
	free := make(chan *ps.FetchCall, outstanding)
	for i := range outstanding {
		f := &ps.FetchCall{Keys: make([]uint64, n)}
		for j := range f.Keys {
			f.Keys[j] = ps.Hash(uint64(i*n+j)) % uint64(keys)
		}
		free <- f
	}
	done := func(f *ps.FetchCall) {
		if f.Err != nil {
			b.Error(f.Err)
		}
		f.Release()
		free <- f
	}
	for b.Loop() {
		c.GoFetch(<-free, done)
	}
	for range outstanding {
		<-free
	}
}
