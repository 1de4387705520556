package ps

import (
	"fmt"
	"testing"
)

func BenchmarkFetchTCP(b *testing.B) {
	const dim, keys = 64, 1 << 16
	for _, size := range []int{1 << 10, 16 << 10, 128 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("shards=4/size=%d/outstanding=32", size), func(b *testing.B) {
			shards, c := startTCP(b, 4, Config{Dim: dim, InitialScale: 1})
			for _, s := range shards {
				if err := s.Create(keyRange(keys)); err != nil {
					b.Fatal(err)
				}
			}
			benchmarkFetch(b, c, size/(4*dim), keys, 32)
		})
	}
}

func keyRange(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	return keys
}

// benchmarkFetch keeps fetches of n random rows outstanding.
func benchmarkFetch(b *testing.B, c *Client, n, keys, outstanding int) {
	b.SetBytes(int64(4 * n * c.Dim()))
	b.ReportAllocs()
	free := make(chan *FetchCall, outstanding)
	for i := range outstanding {
		f := &FetchCall{Keys: make([]uint64, n)}
		for j := range f.Keys {
			f.Keys[j] = Hash(uint64(i*n+j)) % uint64(keys)
		}
		free <- f
	}
	done := func(f *FetchCall) {
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
