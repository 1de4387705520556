package allocjob

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/bemalloc"
)

// Config is one run.
type Config struct {
	Workload   Workload
	Threads    int    // goroutines, on as many Ps
	Iterations uint64 // of all threads together; 0: the workload's
	Edge       bool   // touch first and last bytes only, not every page
	Heaps      bool   // a bemalloc.Heap a thread, not the pool's own calls
	Pool       *bemalloc.Pool
}

// MaxThreads bounds Config.Threads.
const MaxThreads = 64

// Touch names what is written of a buffer: "page" or "edge".
func (c *Config) Touch() string {
	if c.Edge {
		return "edge"
	}
	return "page"
}

// checksums are the definition's, by workload and threads, for its iterations.
var checksums = map[string]map[int]uint64{
	"large": {1: 30904938679, 2: 31183200788, 4: 31770489196, 8: 32817989305},
	"small": {1: 33202078732, 2: 33587591476, 4: 34360369799, 8: 35872922808},
}

// Checksum gives the sum that a run must end with, where the definition says it.
func (c *Config) Checksum() (sum uint64, ok bool) {
	if c.Iterations != 0 && c.Iterations != c.Workload.Iterations {
		return 0, false
	}
	sum, ok = checksums[c.Workload.Name][c.Threads]
	return sum, ok
}

// Result is what a run measured.
type Result struct {
	Iterations   uint64
	Ops          uint64        // allocations and frees of the measured phase
	Elapsed      time.Duration // of the measured phase, to the end of the last thread
	CPU          time.Duration // of the whole process in the measured phase, the collector included; 0: unknown
	Checksum     uint64        // sum of the sizes freed in the whole run
	TableHash    uint64
	NominalBytes uint64 // live set that the workload asks for, all threads
	BaseBytes    uint64 // resident before the threads started; 0: unknown
	PeakBytes    uint64 // most ever resident
	Stalls       uint64
	Registered   int64 // the pool's registered bytes at the end of the measured phase
}

// Run performs the workload. It sets GOMAXPROCS to the number of threads while it
// runs. The first error of the pool ends the run.
func Run(cfg Config) (Result, error) {
	if cfg.Threads < 1 || cfg.Threads > MaxThreads {
		return Result{}, fmt.Errorf("alloc job: %d threads, want 1 to %d", cfg.Threads, MaxThreads)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cfg.Threads))
	return run(cfg)
}

// job is what the threads of a run share.
type job struct {
	w       *Workload
	edge    bool
	table   [tableSize]uint32
	boxes   []mailbox
	arrived atomic.Int32  // threads at the current barrier
	all     chan struct{} // filled when all are there
	phase   atomic.Int32
	ended   atomic.Int32 // threads that finished the measured phase
}

func run(cfg Config) (Result, error) {
	j := &job{w: &cfg.Workload, edge: cfg.Edge, boxes: make([]mailbox, cfg.Threads), all: make(chan struct{}, 1)}
	j.table = j.w.table()
	total := cfg.Iterations
	if total == 0 {
		total = j.w.Iterations
	}
	each := total / uint64(cfg.Threads)
	workers := make([]*worker, cfg.Threads)
	for i := range workers {
		workers[i] = newWorker(j, i, cfg.Pool)
	}
	runtime.GC()
	base, _ := resident()
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			if cfg.Heaps {
				w.heap = cfg.Pool.NewHeap(bemalloc.HeapOptions{})
				defer func() { _ = w.heap.Close() }() // cannot fail
			}
			w.main(each)
		})
	}
	<-j.all
	j.phase.Store(1)
	<-j.all
	start, cpu := time.Now(), processCPU()
	j.phase.Store(2)
	<-j.all
	cpu = processCPU() - cpu
	_, peak := resident()
	registered := cfg.Pool.Stats().RegisteredBytes
	j.phase.Store(3)
	wg.Wait()

	r := Result{
		Iterations: each * uint64(cfg.Threads), CPU: cpu, TableHash: hash(&j.table),
		NominalBytes: j.w.nominal(&j.table) * uint64(cfg.Threads), BaseBytes: base, PeakBytes: peak, Registered: registered,
	}
	allocs, frees := uint64(0), uint64(0)
	for _, w := range workers {
		if w.err != nil {
			return Result{}, w.err
		}
		r.Elapsed = max(r.Elapsed, w.end.Sub(start))
		r.Ops += w.ops
		r.Checksum += w.sum
		r.Stalls += w.stalls
		allocs += w.allocs
		frees += w.frees
	}
	if allocs != frees {
		return Result{}, fmt.Errorf("alloc job: %d allocations, but %d frees", allocs, frees)
	}
	return r, nil
}

// arrive counts a thread that reached a barrier. The one who waits for all of them
// sleeps meanwhile: the CPU time of the process is what is measured.
func (j *job) arrive() {
	if int(j.arrived.Add(1)) == len(j.boxes) {
		j.arrived.Store(0)
		j.all <- struct{}{}
	}
}
