package allocjob

import (
	"errors"
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/bemalloc"
)

func TestSplitMix(t *testing.T) {
	s := newSplitMix(0)
	for i, want := range []uint64{0x172dca705fcca9d9, 0x8f9f38d37881e6a1, 0xa876e8069ddb6d3d} {
		if got := s.next(); got != want {
			t.Errorf("value %d is %x, want %x", i, got, want)
		}
	}
}

func TestTables(t *testing.T) {
	for _, c := range []struct {
		w                Workload
		first, mid, last uint32
		sum, hash        uint64
	}{
		{Large, 65559, 200446, 1045069, 1046424879, 0xeca8d4a2995c63d3},
		{Small, 16, 4808, 16203, 22411256, 0x5803271e1234b3ba},
	} {
		table := c.w.table()
		sum := uint64(0)
		for _, v := range table {
			sum += uint64(v)
		}
		if table[0] != c.first || table[2047] != c.mid || table[4095] != c.last || sum != c.sum || hash(&table) != c.hash {
			t.Errorf("%s: %d %d %d, sum %d, hash %x", c.w.Name, table[0], table[2047], table[4095], sum, hash(&table))
		}
	}
}

// TestChecksums does the defined work in full. Control: other iterations give
// another sum.
func TestChecksums(t *testing.T) {
	for _, w := range []Workload{Large, Small} {
		for threads, want := range checksums[w.Name] {
			for _, heaps := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/threads=%d/heaps=%v", w.Name, threads, heaps), func(t *testing.T) {
					r := mustRun(t, Config{Workload: w, Threads: threads, Heaps: heaps, Edge: true})
					if r.Checksum != want {
						t.Errorf("checksum %d, want %d", r.Checksum, want)
					}
					if r.Ops == 0 || r.Elapsed <= 0 {
						t.Errorf("%d operations in %v", r.Ops, r.Elapsed)
					}
				})
			}
		}
	}
	if r := mustRun(t, Config{Workload: Large, Threads: 1, Iterations: 119_999}); r.Checksum == checksums["large"][1] {
		t.Error("control: fewer iterations, but the same checksum")
	}
}

func mustRun(t *testing.T, cfg Config) Result {
	t.Helper()
	p, err := bemalloc.New(bemalloc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Pool = p
	r, err := Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPoolFails: an allocation that fails ends the run with its error, not with a
// hang, and leaves nothing behind.
func TestPoolFails(t *testing.T) {
	p, err := bemalloc.New(bemalloc.Config{MaxBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(Config{Workload: Large, Threads: 3, Iterations: 3000, Pool: p}); !errors.Is(err, bemalloc.ErrLimit) {
		t.Errorf("Run: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, n := range []int{0, 65, -1} {
		if _, err := Run(Config{Workload: Small, Threads: n}); err == nil {
			t.Errorf("%d threads: no error", n)
		}
	}
}
