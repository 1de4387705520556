package bemalloc

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/mr"
)

// unlocked fails the test if a lock of the pool is held: a Registrar must be
// called under none.
func unlocked(t testing.TB, p *Pool) {
	t.Helper()
	if !p.runs.mu.TryLock() {
		t.Error("the run lock is held during Register")
	} else {
		p.runs.mu.Unlock()
	}
	for c := range p.central {
		if !p.central[c].mu.TryLock() {
			t.Errorf("the lock of class %d is held during Register", c)
		} else {
			p.central[c].mu.Unlock()
		}
	}
}

// TestRegisterOnceForMany lets as many goroutines as a block has units find an
// empty pool: one block is registered, under no lock, and all are served.
func TestRegisterOnceForMany(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		dev := newRegistrar(t)
		entered, let := make(chan struct{}), make(chan struct{})
		cfg.Registrar, cfg.noJanitor = dev, true
		p := newPool(t, cfg)
		dev.before = func(n int) {
			if n == 1 {
				close(entered)
			}
			<-let
			unlocked(t, p)
		}
		bufs := make(chan []byte, unitsPerBlock)
		var wg sync.WaitGroup
		for range unitsPerBlock {
			wg.Go(func() {
				b, err := p.Alloc(3000)
				if err != nil {
					t.Error(err)
				}
				bufs <- b
			})
		}
		<-entered
		for waiting(p) < 1 { // a flight is under way
			time.Sleep(time.Millisecond)
		}
		close(let)
		wg.Wait()
		if n := dev.count(); n != 1 {
			t.Errorf("%d registrations, want 1", n)
		}
		for range unitsPerBlock {
			free(t, p, <-bufs)
		}
	})
}

func waiting(p *Pool) int {
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	if p.runs.flight == nil {
		return 0
	}
	return 1
}

// TestRegisterFailsAt lets the k-th registration fail, for each k, while buffers
// of every kind are allocated: the failure is an error of that call, nothing is
// lost, and the pool goes on.
func TestRegisterFailsAt(t *testing.T) {
	sizes := []int{100, 5 << 20, 3 << 20, 3 << 20, 9 << 20, 40 << 10, 3 << 20, 5 << 20}
	for k := 1; k <= 8; k++ {
		t.Run(fmt.Sprintf("k=%d", k), func(t *testing.T) {
			dev, dev2, clk := newRegistrar(t), newRegistrar(t), newClock()
			dev.failAt = k
			p := newPool(t, Config{Registrar: dev2, Also: []mr.Registrar{dev}, noJanitor: true, now: clk.now})
			var live [][]byte
			failed := 0
			for _, n := range sizes {
				before := p.Stats()
				b, err := p.Alloc(n)
				clk.advance(5 * time.Second)
				if err == nil {
					live = append(live, b)
					continue
				}
				failed++
				var re *RegisterError
				if !errors.As(err, &re) || !errors.Is(err, errRefused) || re.Device != 1 || re.Bytes < int64(n) && n > blockSize {
					t.Fatalf("alloc %d: %v", n, err)
				}
				after := p.Stats()
				if after.RegisteredBytes != before.RegisteredBytes || after.InUseBytes != before.InUseBytes ||
					after.FreeBytes+after.CachedLargeBytes != before.FreeBytes+before.CachedLargeBytes || after.RegisterFailures != before.RegisterFailures+1 {
					t.Errorf("failure changed the pool:\n%+v\n%+v", before, after)
				}
			}
			if want := min(k, 1); failed != want && dev.count() >= k {
				t.Errorf("%d calls failed, want %d", failed, want)
			}
			if dev.regions() != dev2.regions() {
				t.Errorf("%d regions with one device, %d with the other", dev.regions(), dev2.regions())
			}
			for _, b := range live {
				r0, err0 := p.MROn(0, b)
				r1, err1 := p.MROn(1, b)
				if err0 != nil || err1 != nil || dev2.live[r0.Handle] != r0 || dev.live[r1.Handle] != r1 {
					t.Errorf("regions %v %v, %v %v", r0, err0, r1, err1)
				}
				if _, err := p.MROn(2, b); !errors.Is(err, ErrNotOwned) {
					t.Errorf("third device: %v", err)
				}
				free(t, p, b)
			}
		})
	}
}

// TestBackOff holds attempts to register to the back-off: 10 ms, doubling to 1 s.
func TestBackOff(t *testing.T) {
	dev, clk := newRegistrar(t), newClock()
	p := newPool(t, Config{Registrar: dev, noJanitor: true, now: clk.now})
	dev.fail = true
	attempt := func() int {
		n := dev.count()
		if _, err := p.Alloc(100); !errors.Is(err, errRefused) {
			t.Fatalf("alloc: %v", err)
		}
		return dev.count() - n
	}
	wait := backOffFirst
	for range 10 {
		if attempt() != 1 {
			t.Errorf("no attempt after %v", wait)
		}
		clk.advance(wait - 1)
		if attempt() != 0 {
			t.Errorf("an attempt within %v", wait)
		}
		clk.advance(1)
		wait = min(2*wait, backOffMax)
	}
	dev.fail = false
	b := must(t)(p.Alloc(100))
	free(t, p, b)
}

// TestBackOffLetsSmallerThrough: a refused huge registration does not keep blocks
// from being opened.
func TestBackOffLetsSmallerThrough(t *testing.T) {
	dev, clk := newRegistrar(t), newClock()
	dev.failAt = 1
	p := newPool(t, Config{Registrar: dev, noJanitor: true, now: clk.now})
	for range 2 {
		if _, err := p.Alloc(100 << 20); !errors.Is(err, errRefused) {
			t.Errorf("alloc: %v", err)
		}
	}
	if n := dev.count(); n != 1 {
		t.Errorf("%d attempts within the back-off", n)
	}
	free(t, p, must(t)(p.Alloc(100)))
}

// TestRefusedThenReclaimed: a refused registration is tried again after what is
// free was given back.
func TestRefusedThenReclaimed(t *testing.T) {
	dev, clk := newRegistrar(t), newClock()
	p := newPool(t, Config{Registrar: dev, noJanitor: true, now: clk.now})
	// A device that takes 12 MiB at most.
	dev.before = func(int) {
		dev.mu.Lock()
		defer dev.mu.Unlock()
		var bytes uint64
		for _, r := range dev.live {
			bytes += r.Length
		}
		dev.fail = bytes+8<<20 > 12<<20
	}
	free(t, p, must(t)(p.Alloc(7<<20)))
	free(t, p, must(t)(p.Alloc(100)))
	b := must(t)(p.Alloc(8<<20 - 100))
	c := must(t)(p.Alloc(1000))
	free(t, p, b)
	b = must(t)(p.Alloc(8<<20 - 200))
	if s := p.Stats(); s.RegisteredBytes != 12<<20 {
		t.Errorf("%d bytes registered, want 12 MiB", s.RegisteredBytes)
	}
	if _, err := p.Alloc(8 << 20); !errors.Is(err, errRefused) {
		t.Errorf("alloc over the device's limit: %v", err)
	}
	free(t, p, b)
	free(t, p, c)
}

// TestRegistrarPanics: the panic reaches the caller, waiters get an error, and
// the pool goes on.
func TestRegistrarPanics(t *testing.T) {
	for _, n := range []int{100, 5 << 20} {
		dev := newRegistrar(t)
		p := newPool(t, Config{Registrar: dev, noJanitor: true})
		dev.before = func(n int) {
			if n == 1 {
				panic("planted")
			}
		}
		func() {
			defer func() {
				if r := recover(); r != "planted" {
					t.Errorf("recovered %v", r)
				}
			}()
			_, err := p.Alloc(n)
			t.Errorf("alloc returned %v", err)
		}()
		if s := p.Stats(); s.RegisteredBytes != 0 || p.runs.committed != 0 {
			t.Errorf("%d bytes registered, %d claimed after a panic", s.RegisteredBytes, p.runs.committed)
		}
		free(t, p, must(t)(p.Alloc(n)))
	}
}

// TestLimits: MaxBytes, MaxRegionBytes and the reservation are typed errors that
// leave the pool usable.
func TestLimits(t *testing.T) {
	p := newPool(t, Config{MaxBytes: 16 << 20, MaxRegionBytes: 12 << 20, ReserveBytes: 64 << 20, noJanitor: true})
	if _, err := p.Alloc(12<<20 + 1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over MaxRegionBytes: %v", err)
	}
	for _, n := range []int{1 << 40, 1<<62 - 1} {
		if _, err := p.Alloc(n); !errors.Is(err, ErrTooLarge) {
			t.Errorf("alloc %d: %v", n, err)
		}
	}
	for _, bad := range [][2]int{{-1, 1}, {1, 0}, {1, 3}, {1, -8}, {1, 8 << 20}, {-1 << 62, 64}} {
		if _, err := p.AllocAligned(bad[0], bad[1]); !errors.Is(err, ErrBadAlign) {
			t.Errorf("AllocAligned(%d, %d): %v", bad[0], bad[1], err)
		}
	}
	big := must(t)(p.Alloc(12 << 20))
	small := must(t)(p.Alloc(100))
	_, err := p.Alloc(5 << 20)
	var le *LimitError
	if !errors.As(err, &le) || !errors.Is(err, ErrLimit) || le.Max != 16<<20 || le.Used != 16<<20 || le.Need != 8<<20 {
		t.Errorf("over MaxBytes: %v", err)
	}
	free(t, p, big)
	free(t, p, must(t)(p.Alloc(5<<20))) // the cached run of 12 MiB made room
	free(t, p, small)

	q := newPool(t, Config{ReserveBytes: 8 << 20, noJanitor: true})
	a, b := must(t)(q.Alloc(4<<20)), must(t)(q.Alloc(4<<20))
	if _, err := q.Alloc(1); !errors.Is(err, ErrNoMemory) {
		t.Errorf("reservation used up: %v", err)
	}
	free(t, q, a)
	free(t, q, b)
}

func TestConfigRefused(t *testing.T) {
	dev := newRegistrar(t)
	for _, cfg := range []Config{
		{MaxBytes: 1}, {MaxBytes: -1}, {ReserveBytes: 4096}, {MaxRegionBytes: 1 << 20}, {PreallocBytes: -1},
		{PreallocBytes: 9 << 20, MaxBytes: 8 << 20}, {PreallocBytes: 9 << 20, ReserveBytes: 8 << 20},
		{Access: mr.RemoteWrite}, {HugePages: 9}, {Also: []mr.Registrar{dev}}, {Registrar: dev, Also: []mr.Registrar{nil}},
		{Debug: Debug{QuarantineBytes: -1}},
	} {
		if p, err := New(cfg); err == nil {
			t.Errorf("New(%+v) succeeded", cfg)
			_ = p.Close()
		}
	}
}

func TestReserveDefault(t *testing.T) {
	for _, c := range []struct{ cfg, want int64 }{{0, 64 << 30}, {5 << 20, 40 << 20}, {1 << 36, 64 << 30}, {1 << 37, 128 << 30}, {1 << 40, maxReserve}} {
		cfg := Config{MaxBytes: c.cfg}
		if err := cfg.check(); err != nil || cfg.ReserveBytes != c.want {
			t.Errorf("MaxBytes %d: %d bytes reserved, want %d (%v)", c.cfg, cfg.ReserveBytes, c.want, err)
		}
	}
}

func TestPrealloc(t *testing.T) {
	dev := newRegistrar(t)
	p := newPool(t, Config{Registrar: dev, PreallocBytes: 9 << 20})
	if s := p.Stats(); s.RegisteredBytes != 12<<20 || dev.regions() != 3 {
		t.Errorf("%d bytes in %d regions, want 12 MiB in 3", s.RegisteredBytes, dev.regions())
	}
	dev2 := newRegistrar(t)
	dev2.failAt = 2
	if _, err := New(Config{Registrar: dev2, PreallocBytes: 9 << 20}); !errors.Is(err, errRefused) {
		t.Errorf("New: %v", err)
	}
}

// TestFailedGrowthLeavesNothing: a registration that fails takes nothing of the limits.
func TestFailedGrowthLeavesNothing(t *testing.T) {
	dev, budget := newRegistrar(t), NewBudget(0)
	p := newPool(t, Config{Registrar: dev, noJanitor: true, Budget: budget})
	b := must(t)(p.Alloc(100))
	used := budget.Used()
	dev.fail = true
	for _, n := range []int{3 << 20, 5 << 20, 9 << 20} {
		if got, err := p.Alloc(n); err == nil && n > blockSize {
			t.Errorf("%d bytes: no error", n)
		} else if err == nil {
			p.Free(got)
		}
	}
	if n := budget.Used(); n != used {
		t.Errorf("%d bytes count against the budget, %d before", n, used)
	}
	dev.fail = false
	if err := p.Free(b); err != nil {
		t.Error(err)
	}
}
