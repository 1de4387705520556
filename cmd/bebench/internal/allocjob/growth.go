package allocjob

import (
	"time"

	"github.com/byteexpress/byteexpress/bemalloc"
)

// GrowthConfig is a run whose live set grows to a size and then stays there while
// buffers come and go: the paper's figure 5. One goroutine does it, and the same work
// every time.
type GrowthConfig struct {
	Workload  Workload // what sizes; the rest of it is not used
	LiveBytes int64    // what the live set grows to
	Samples   int      // points of the result, half of them while it grows
	Heap      bool     // allocate from a bemalloc.Heap, not by the pool's own calls
	Pool      *bemalloc.Pool
	Sampled   func(GrowthSample) error // called with each point; an error ends the run
}

// plateauTurns is how many times as many operations the plateau has as the growth: the
// live set is replaced several times, so that what it settles at is seen.
const plateauTurns = 8

// GrowthSample is a point of a growth run.
type GrowthSample struct {
	Plateau       bool   // the live set has its size
	Ops           uint64 // allocations and frees so far
	Elapsed       time.Duration
	Live          int64 // bytes that the program asked for and has
	InUse         int64 // those bytes as the pool rounds them
	Registered    int64 // bytes
	Registrations int64 // calls of the Registrar so far
}

// Growth performs the run. While the set grows, two buffers come for each that goes.
func Growth(cfg GrowthConfig) (err error) {
	g := &growth{cfg: cfg, table: cfg.Workload.table(), rng: newSplitMix(0), start: time.Now()}
	if cfg.Heap {
		g.heap = cfg.Pool.NewHeap(bemalloc.HeapOptions{})
		defer func() { _ = g.heap.Close() }() // cannot fail
	}
	defer func() {
		for len(g.bufs) > 0 && err == nil {
			err = g.free()
		}
	}()
	half := max(cfg.Samples/2, 1)
	for i := 1; i <= half; i++ {
		for g.live < cfg.LiveBytes/int64(half)*int64(i) {
			if err := g.each(g.alloc, g.alloc, g.free); err != nil {
				return err
			}
		}
		if err := g.sample(false); err != nil {
			return err
		}
	}
	step := max(plateauTurns*g.ops/uint64(half), 2)
	for i := 1; i <= half; i++ {
		for end := g.ops + step; g.ops < end; {
			next := g.free
			if g.live < cfg.LiveBytes {
				next = g.alloc
			}
			if err := next(); err != nil {
				return err
			}
		}
		if err := g.sample(true); err != nil {
			return err
		}
	}
	return nil
}

type growth struct {
	cfg   GrowthConfig
	heap  *bemalloc.Heap
	table [tableSize]uint32
	rng   splitMix
	start time.Time
	bufs  [][]byte
	live  int64
	ops   uint64
}

func (g *growth) each(steps ...func() error) error {
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (g *growth) alloc() error {
	size := int(g.table[g.rng.next()>>16%tableSize])
	var b []byte
	var err error
	if g.heap != nil {
		b, err = g.heap.Alloc(size)
	} else {
		b, err = g.cfg.Pool.Alloc(size)
	}
	if err != nil {
		return err
	}
	b[0], b[size-1] = 1, 1
	g.bufs = append(g.bufs, b)
	g.live += int64(size)
	g.ops++
	return nil
}

// free frees one of the buffers, any.
func (g *growth) free() error {
	i := int(g.rng.next() % uint64(len(g.bufs)))
	b := g.bufs[i]
	g.bufs[i] = g.bufs[len(g.bufs)-1]
	g.bufs = g.bufs[:len(g.bufs)-1]
	g.live -= int64(len(b))
	g.ops++
	if g.heap != nil {
		return g.heap.Free(b)
	}
	return g.cfg.Pool.Free(b)
}

func (g *growth) sample(plateau bool) error {
	s := g.cfg.Pool.Stats()
	return g.cfg.Sampled(GrowthSample{
		Plateau: plateau, Ops: g.ops, Elapsed: time.Since(g.start), Live: g.live, InUse: s.InUseBytes,
		Registered: s.RegisteredBytes, Registrations: s.Register.Count,
	})
}
