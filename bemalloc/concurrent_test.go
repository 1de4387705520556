package bemalloc

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// opsPerWorker keeps a concurrent test in the order of a second, race detector
// included.
const opsPerWorker = 30_000

// tagged is a buffer whose ends carry a tag, so that two owners of one piece of
// memory are noticed; the race detector does not look there.
type tagged struct {
	b   []byte
	tag byte
}

func (x tagged) write() {
	for i := 0; i < len(x.b); i += 1024 {
		x.b[i] = x.tag
	}
	x.b[len(x.b)-1] = x.tag
}

func (x tagged) intact() bool {
	for i := 0; i < len(x.b); i += 1024 {
		if x.b[i] != x.tag {
			return false
		}
	}
	return x.b[len(x.b)-1] == x.tag
}

func someSize(rng *rand.Rand) int {
	switch rng.IntN(200) {
	case 0:
		return 1 + rng.IntN(256<<10)
	case 1, 2, 3:
		return 1 + rng.IntN(maxSmall)
	default:
		return 1 + rng.IntN(1500)
	}
}

// exchange lets workers allocate, hand buffers to each other and free what they
// got, each through the allocator that its number selects.
func exchange(t *testing.T, p *Pool, workers int, seed uint64) {
	rings := make([]chan tagged, workers)
	for i := range rings {
		rings[i] = make(chan tagged, 64)
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			var a allocator = p
			if w%3 == 1 {
				h := p.NewHeap(HeapOptions{})
				defer func() { _ = h.Close() }()
				a = h
			}
			put := func(x tagged) {
				if !x.intact() {
					t.Errorf("worker %d: a buffer of %d bytes was overwritten", w, len(x.b))
				}
				if err := a.Free(x.b); err != nil {
					t.Errorf("worker %d: free: %v", w, err)
				}
			}
			for i := range opsPerWorker {
				b, err := a.Alloc(someSize(rng))
				if err != nil {
					t.Errorf("worker %d: %v", w, err)
					return
				}
				x := tagged{b, byte(rng.Uint32())}
				x.write()
				if _, err := p.MR(b); err != nil {
					t.Errorf("worker %d: MR: %v", w, err)
				}
				select {
				case rings[(w+1+i%(workers-1))%workers] <- x:
				default:
					put(x)
				}
				for range 2 {
					select {
					case x := <-rings[w]:
						put(x)
					default:
					}
				}
			}
		})
	}
	wg.Wait()
	for _, r := range rings {
		for len(r) > 0 {
			x := <-r
			if !x.intact() {
				t.Error("a buffer left over was overwritten")
			}
			if err := p.Free(x.b); err != nil {
				t.Error(err)
			}
		}
	}
}

// checkIdle holds a pool that nobody uses to its sums, and to being empty.
func checkIdle(t *testing.T, p *Pool) {
	t.Helper()
	s := p.Stats()
	if err := addsUp(s); err != nil {
		t.Error(err)
	}
	if s.InUseBytes != 0 || s.DoubleFrees != 0 || s.BadFrees != 0 {
		t.Errorf("idle pool: %+v", s)
	}
}

func TestExchange(t *testing.T) {
	seed := newRand(t).Uint64()
	kinds(t, func(t *testing.T, cfg Config) {
		cfg.Registrar = newRegistrar(t)
		p := newPool(t, cfg)
		exchange(t, p, 6, seed)
		checkIdle(t, p)
	})
}

// background runs f in a loop beside a test's workers.
func background(f func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
				f()
				runtime.Gosched()
			}
		}
	}()
	return func() { close(quit); <-done }
}

// TestExchangeBesideTrim trims and takes statistics all the time, so that blocks
// come and go under the workers.
func TestExchangeBesideTrim(t *testing.T) {
	seed := newRand(t).Uint64()
	kinds(t, func(t *testing.T, cfg Config) {
		cfg.Registrar, cfg.RetainBytes, cfg.MaxBytes = newRegistrar(t), -1, 256<<20
		p := newPool(t, cfg)
		stop := background(func() {
			p.Trim(0)
			if s := p.Stats(); s.RegisteredBytes > 256<<20 {
				t.Errorf("%d bytes registered", s.RegisteredBytes)
			}
			time.Sleep(200 * time.Microsecond)
		})
		exchange(t, p, 4, seed)
		stop()
		checkIdle(t, p)
		p.Trim(0)
		if s := p.Stats(); s.RegisteredBytes != 0 {
			t.Errorf("after Trim(0): %d bytes registered", s.RegisteredBytes)
		}
	})
}

// TestGOMAXPROCS changes the number of Ps under the workers.
func TestGOMAXPROCS(t *testing.T) {
	seed := newRand(t).Uint64()
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	p := newPool(t, Config{})
	var n atomic.Int32
	stop := background(func() {
		runtime.GOMAXPROCS(1 + int(n.Add(1))%7)
		time.Sleep(time.Millisecond)
	})
	exchange(t, p, 6, seed)
	stop()
	checkIdle(t, p)
}

// TestGarbageCollector collects all the time beside allocating goroutines: no
// pinned section may outlast a stop of the world.
func TestGarbageCollector(t *testing.T) {
	seed := newRand(t).Uint64()
	p := newPool(t, Config{})
	stop := background(runtime.GC)
	exchange(t, p, 8, seed)
	stop()
	checkIdle(t, p)
}

// TestHeapsComeAndGo closes and drops heaps while others free their buffers.
func TestHeapsComeAndGo(t *testing.T) {
	p := newPool(t, Config{})
	ring := make(chan []byte, 256)
	var freers sync.WaitGroup
	for range 2 {
		freers.Go(func() {
			for b := range ring {
				if err := p.Free(b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 300 {
				h := p.NewHeap(HeapOptions{})
				for j := range 50 {
					b, err := h.Alloc(100 + 37*j)
					if err != nil {
						t.Error(err)
						return
					}
					ring <- b
				}
				if (i+w)%2 == 0 {
					if err := h.Close(); err != nil {
						t.Error(err)
					}
				} // else dropped
			}
		})
	}
	wg.Wait()
	close(ring)
	freers.Wait()
	for range 100 { // dropped heaps give back what they hold when collected
		runtime.GC()
		p.heapsMu.Lock()
		n := len(p.heaps)
		p.heapsMu.Unlock()
		if n == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.heapsMu.Lock()
	if n := len(p.heaps); n > 0 {
		t.Errorf("%d dropped heaps were not cleaned up", n)
	}
	p.heapsMu.Unlock()
	checkIdle(t, p)
}

// TestCloseTwice: a closed pool stays closed, and whatever is called on it or its
// heaps says so.
func TestCloseTwice(t *testing.T) {
	p := newPool(t, Config{})
	h := p.NewHeap(HeapOptions{})
	b := must(t)(h.Alloc(10))
	if err := h.Free(b); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Alloc(1); err != ErrClosed {
		t.Errorf("Alloc after Close: %v", err)
	}
	if _, err := h.Alloc(1); err != ErrClosed {
		t.Errorf("Heap.Alloc after Close: %v", err)
	}
	if err := p.Free(b); err != ErrClosed {
		t.Errorf("Free after Close: %v", err)
	}
	if err := h.Free(b); err != ErrClosed {
		t.Errorf("Heap.Free after Close: %v", err)
	}
	if _, err := p.MR(b); err != ErrNotOwned {
		t.Errorf("MR after Close: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if p.Trim(0) != 0 || p.Stats().RegisteredBytes != 0 {
		t.Error("something is left after Close")
	}
}

// TestInteriorBeside asks for the regions of parts of large buffers while others allocate
// and free beside them.
func TestInteriorBeside(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		p := newPool(t, cfg)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(w)))
				h := p.NewHeap(HeapOptions{})
				defer func() { _ = h.Close() }()
				var live [16][]byte
				for range 5000 {
					i := r.IntN(len(live))
					if b := live[i]; b != nil {
						for range 3 {
							at := r.IntN(len(b))
							if _, err := p.MR(b[at:]); err != nil || !p.Owns(b[at:]) {
								t.Errorf("region from byte %d of %d: %v", at, len(b), err)
							}
							if at > 0 {
								if err := p.Free(b[at:]); !errors.Is(err, ErrBadFree) {
									t.Errorf("free from byte %d of %d: %v", at, len(b), err)
								}
							}
						}
						f := p.Free
						if r.IntN(2) == 0 {
							f = h.Free
						}
						if err := f(b); err != nil {
							t.Error(err)
						}
					}
					n := maxSmall + 1 + r.IntN(1200<<10)
					if r.IntN(4) == 0 {
						n = 1 + r.IntN(maxSmall)
					}
					a := p.Alloc
					if r.IntN(2) == 0 {
						a = h.Alloc
					}
					b, err := a(n)
					if err != nil {
						t.Error(err)
						return
					}
					live[i] = b
				}
				for _, b := range live {
					_ = p.Free(b)
				}
			})
		}
		wg.Wait()
		runtime.GC()
	})
}
