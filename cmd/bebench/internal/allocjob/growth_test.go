package allocjob_test

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/allocjob"
	"github.com/byteexpress/byteexpress/mr"
)

type counting struct{}

func (counting) Register(buf []byte, _ mr.Access) (mr.Region, error) {
	return mr.Region{Addr: mr.Addr(buf), Length: uint64(len(buf))}, nil
}
func (counting) Deregister(mr.Region) error { return nil }

// TestGrowth: registered bytes follow the live set up, and on the plateau, once it has
// been seen for a while, hardly anything is registered any more: at most one block.
func TestGrowth(t *testing.T) {
	const live, samples = 64 << 20, 32
	for _, w := range []allocjob.Workload{allocjob.Small, allocjob.Large} {
		for _, heap := range []bool{true, false} {
			pool, err := bemalloc.New(bemalloc.Config{Registrar: counting{}})
			if err != nil {
				t.Fatal(err)
			}
			var all []allocjob.GrowthSample
			cfg := allocjob.GrowthConfig{Workload: w, LiveBytes: live, Samples: samples, Heap: heap, Pool: pool,
				Sampled: func(s allocjob.GrowthSample) error { all = append(all, s); return nil }}
			if err := allocjob.Growth(cfg); err != nil {
				t.Fatal(err)
			}
			if err := pool.Close(); err != nil {
				t.Fatal(err)
			}
			if len(all) != samples {
				t.Fatalf("%s: %d samples, want %d", w.Name, len(all), samples)
			}
			for i, s := range all {
				if s.Plateau != (i >= samples/2) || s.Live > live+int64(w.Max)*2 || s.InUse < s.Live || s.Registered < s.InUse {
					t.Errorf("%s: sample %d: %+v", w.Name, i, s)
				}
			}
			top, settled := all[samples-1], all[samples*7/8]
			if top.Registrations > settled.Registrations+1 || top.Registered > live*2 {
				t.Errorf("%s: %+v, then %+v: the plateau registers", w.Name, settled, top)
			}
		}
	}
	pool, err := bemalloc.New(bemalloc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	cfg := allocjob.GrowthConfig{Workload: allocjob.Large, LiveBytes: 8 << 20, Samples: 4, Pool: pool, Sampled: func(allocjob.GrowthSample) error { return stop }}
	if err := allocjob.Growth(cfg); !errors.Is(err, stop) {
		t.Errorf("Growth: %v, want %v", err, stop)
	}
	_ = pool.Close()
}
