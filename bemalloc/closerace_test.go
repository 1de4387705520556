package bemalloc

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// TestCloseBesideAllocs closes pools while goroutines allocate: a pool that is closed has
// no buffer in use and nothing registered, and Close can be called until it is.
func TestCloseBesideAllocs(t *testing.T) {
	rounds := uint64(150)
	if testing.Short() {
		rounds = 40
	}
	for round := range rounds {
		r := newRegistrar(t)
		p := newPool(t, Config{Registrar: r})
		var wg sync.WaitGroup
		begun := make(chan struct{}, 8)
		for g := range uint64(8) {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(round, g))
				for k := 0; ; k++ {
					if k == int(round%7) {
						begun <- struct{}{}
					}
					b, err := p.Alloc([]int{64, 8192, 100_000, 1 << 20, blockSize + 1}[rng.IntN(5)])
					if errors.Is(err, ErrClosed) {
						if k < int(round%7) {
							begun <- struct{}{}
						}
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					b[0] = 1 // faults if the pool is gone
					b[len(b)-1] = 1
					if rng.IntN(2) == 0 {
						runtime.Gosched()
					}
					if err := p.Free(b); err != nil {
						t.Error(err)
					}
				}
			})
		}
		<-begun
		for err := p.Close(); err != nil; err = p.Close() {
			if !errors.Is(err, ErrLeak) {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
		r.mu.Lock()
		if n := len(r.live); n != 0 {
			t.Errorf("round %d: the pool is closed with %d regions registered", round, n)
		}
		r.mu.Unlock()
		wg.Wait()
	}
}

// TestCloseBesideSlowRegistration closes a pool while a device takes its time to register: the
// memory stays until the buffer that comes of it is freed.
func TestCloseBesideSlowRegistration(t *testing.T) {
	for _, size := range []int{1 << 20, blockSize + 1} { // opened in a flight, and alone
		r := newRegistrar(t)
		began, goOn := make(chan struct{}), make(chan struct{})
		r.before = func(int) { close(began); <-goOn }
		p := newPool(t, Config{Registrar: r})
		allocated := make(chan []byte)
		go func() {
			b, err := p.Alloc(size)
			if err != nil && !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			allocated <- b
		}()
		<-began
		closed := make(chan error)
		go func() { closed <- p.Close() }()
		var err error
		if size > blockSize {
			if err = <-closed; !errors.Is(err, ErrLeak) {
				t.Errorf("Close beside a registration: %v, want %v", err, ErrLeak)
			}
			close(goOn)
		} else { // Close waits for the flight
			close(goOn)
			err = <-closed
		}
		if b := <-allocated; b != nil {
			b[0], b[len(b)-1] = 1, 1 // faults if the pool is gone
			if err := p.Free(b); err != nil {
				t.Error(err)
			}
		}
		if err != nil {
			err = p.Close()
		}
		if err != nil || r.regions() != 0 {
			t.Errorf("Close in the end: %v, with %d regions registered", err, r.regions())
		}
	}
}
