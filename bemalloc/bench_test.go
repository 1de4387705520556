package bemalloc

import (
	"fmt"
	"sync"
	"testing"
)

// allocator is what a benchmark drives: the pool, or a heap per goroutine.
type allocator interface {
	Alloc(int) ([]byte, error)
	Free([]byte) error
}

// benchPairs times alloc+free pairs of mixed sizes around size, each with a ring
// of live buffers, on several goroutines. ns/op is wall time per pair per
// goroutine.
func benchPairs(b *testing.B, cfg Config, heaps bool, size, goroutines int) {
	cfg.ReserveBytes = 16 << 30
	p, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			b.Error(err)
		}
	}()
	pairs := func(a allocator, n int, live [][]byte) {
		for i := range n {
			slot := &live[i%len(live)]
			if *slot != nil {
				if err := a.Free(*slot); err != nil {
					b.Error(err)
					return
				}
			}
			buf, err := a.Alloc(size + (i%16)*size/16)
			if err != nil {
				b.Error(err)
				return
			}
			*slot = buf
		}
	}
	b.ReportAllocs()
	const batch = 4096
	work := make(chan int)
	var wg, round sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			var a allocator = p
			if heaps {
				h := p.NewHeap(HeapOptions{})
				defer h.Close()
				a = h
			}
			live := make([][]byte, 64)
			for n := range work {
				pairs(a, n, live)
				round.Done()
			}
			for _, buf := range live {
				if buf != nil {
					_ = a.Free(buf)
				}
			}
		})
	}
	n := 0
	for b.Loop() {
		if n++; n%batch == 0 {
			round.Add(goroutines)
			for range goroutines {
				work <- batch
			}
			round.Wait()
		}
	}
	close(work)
	wg.Wait()
}

func BenchmarkPair(b *testing.B) {
	for _, size := range []int{64, 1024, 128 << 10} {
		for _, g := range []int{1, 2, 8} {
			b.Run(fmt.Sprintf("from=heap/size=%d/goroutines=%d", size, g), func(b *testing.B) {
				benchPairs(b, Config{}, true, size, g)
			})
			b.Run(fmt.Sprintf("from=pool/size=%d/goroutines=%d", size, g), func(b *testing.B) {
				benchPairs(b, Config{}, false, size, g)
			})
			b.Run(fmt.Sprintf("from=shards/size=%d/goroutines=%d", size, g), func(b *testing.B) {
				benchPairs(b, Config{forceShards: true}, false, size, g)
			})
		}
	}
}

func BenchmarkMR(b *testing.B) {
	p := newPool(b, Config{})
	for _, size := range []int{256, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			buf, err := p.Alloc(size)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = p.Free(buf) }()
			part := buf[size/2:]
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.MR(part); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
