package ps_test

import (
	"context"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/ps"
)

// TestRowsAreNeverTorn pushes the same gradient to all values of all rows, so that in
// every state all values of one shard's rows are equal, from many goroutines; readers
// look for rows that are not.
func TestRowsAreNeverTorn(t *testing.T) {
	for name, dim := range map[string]int{"copied": 32, "lent": 256} {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, tr transport) { testRowsAreNeverTorn(t, tr, dim) })
		})
	}
}

func testRowsAreNeverTorn(t *testing.T, tr transport, dim int) {
	const pushers, pushes = 8, 50
	keys := keyRange(40)
	_, c := tr.start(t, 3, ps.Config{Dim: dim, LearningRate: 1})
	gradients := make([]float32, len(keys)*dim)
	for i := range gradients {
		gradients[i] = -1
	}
	ctx := context.Background()
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for range pushers {
		writers.Go(func() {
			for range pushes {
				if err := c.Push(ctx, keys, gradients); err != nil {
					t.Error(err)
				}
			}
		})
	}
	check := func() {
		f, err := c.Fetch(ctx, keys)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Release()
		first := map[int]float32{}
		for i, key := range keys {
			row, shard := f.Row(i), ps.ShardOf(key, c.Shards())
			if _, ok := first[shard]; !ok {
				first[shard] = row[0]
			}
			for _, v := range row {
				if v != first[shard] {
					t.Errorf("shard %d: %v beside %v", shard, v, first[shard])
					return
				}
			}
		}
	}
	for range 24 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					check()
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	f, err := c.Fetch(ctx, keys)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	for i := range keys {
		if got := f.Row(i)[dim-1]; got != pushers*pushes {
			t.Errorf("row %d sums to %v, want %d", i, got, pushers*pushes)
		}
	}
}
