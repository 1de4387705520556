package bemalloc

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestQuota(t *testing.T) {
	for _, debug := range []Debug{{}, {Sites: true, Guard: true, Poison: true}} {
		p := newPool(t, Config{Debug: debug, noJanitor: true})
		h := p.NewHeap(HeapOptions{QuotaBytes: 6 << 20})
		other := p.NewHeap(HeapOptions{})
		tail := 0
		if debug.Guard {
			tail = guardBytes
		}
		var bufs [][]byte
		for _, n := range []int{100, 1000, 30_000, 60_000, 1 << 20} {
			bufs = append(bufs, must(t)(h.Alloc(n-tail)))
		}
		if h.quota.used != 128+1088+32768+65536+1<<20 {
			t.Errorf("%d bytes counted", h.quota.used)
		}
		_, err := h.Alloc(5 << 20)
		var le *LimitError
		if !errors.As(err, &le) || !errors.Is(err, ErrLimit) || le.What != "heap quota" || le.Max != 6<<20 || le.Used != h.quota.used || le.Need != 8<<20 {
			t.Errorf("over the quota: %v", err)
		}
		free(t, p, must(t)(other.Alloc(5<<20))) // others are not touched
		for i, b := range bufs {
			if r, err := p.MR(b[1:]); err != nil || !r.Contains(r.Addr, 1) {
				t.Errorf("MR: %v, %v", r, err)
			}
			if err := p.Free(b[1:]); !errors.Is(err, ErrBadFree) {
				t.Errorf("free from the second byte of %d: %v", len(b), err)
			}
			var err error
			if i%2 == 0 {
				err = other.Free(b)
			} else {
				err = p.Free(b)
			}
			if err != nil {
				t.Error(err)
			}
			if err := p.Free(b); !errors.Is(err, ErrDoubleFree) {
				t.Errorf("second free of %d: %v", len(b), err)
			}
		}
		if h.quota.used != 0 {
			t.Errorf("%d bytes counted after all was freed", h.quota.used)
		}
		if err := addsUp(p.Stats()); err != nil {
			t.Error(err)
		}
		// The memory went back: runs that had an owner count against nobody now.
		q := p.NewHeap(HeapOptions{QuotaBytes: 1 << 20})
		for range 70 {
			b := must(t)(other.Alloc(60_000))
			defer free(t, p, b)
		}
		if q.quota.used != 0 {
			t.Errorf("%d bytes counted for others", q.quota.used)
		}
		for _, h := range []*Heap{h, other, q} {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := p.numQuotas(); n != 0 {
			t.Errorf("%d quotas left", n)
		}
	}
}

func (p *Pool) numQuotas() (n int) {
	for _, q := range *p.quotas.Load() {
		if q != nil {
			n++
		}
	}
	return n
}

// TestQuotaOutlivesHeap: buffers of a closed heap are freed later; the account
// goes with the last one, and its number is used again.
func TestQuotaOutlivesHeap(t *testing.T) {
	p := newPool(t, Config{noJanitor: true})
	h := p.NewHeap(HeapOptions{QuotaBytes: 1 << 20})
	a, b := must(t)(h.Alloc(100)), must(t)(h.Alloc(100_000))
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Alloc(1); !errors.Is(err, ErrClosed) {
		t.Errorf("Alloc after Close: %v", err)
	}
	free(t, p, a)
	if p.numQuotas() != 1 {
		t.Error("the account went while a buffer was in use")
	}
	var le *LeakError
	if err := p.Close(); !errors.As(err, &le) || le.Allocations != 1 {
		t.Errorf("Close: %v", err)
	}
	free(t, p, b)
	if p.numQuotas() != 0 {
		t.Error("the account stayed")
	}
	if s := p.Stats(); s.InUseBytes != 0 || addsUp(s) != nil {
		t.Errorf("%d bytes in use, %v", s.InUseBytes, addsUp(s))
	}
}

// TestQuotaFailedGrowth: what cannot be had is not counted.
func TestQuotaFailedGrowth(t *testing.T) {
	dev := newRegistrar(t)
	dev.fail = true
	p := newPool(t, Config{Registrar: dev, noJanitor: true})
	h := p.NewHeap(HeapOptions{QuotaBytes: 1 << 30})
	for _, n := range []int{1, 100_000, 5 << 20} {
		if _, err := h.Alloc(n); !errors.Is(err, errRefused) {
			t.Errorf("alloc %d: %v", n, err)
		}
	}
	if h.quota.used != 0 {
		t.Errorf("%d bytes counted", h.quota.used)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// TestWaitForQuota: AllocWait returns once another goroutine freed enough.
func TestWaitForQuota(t *testing.T) {
	p := newPool(t, Config{})
	h := p.NewHeap(HeapOptions{QuotaBytes: 1 << 20})
	a := must(t)(h.Alloc(1 << 20))
	go func() {
		for !h.quota.room.occupied() {
			time.Sleep(time.Millisecond)
		}
		if err := p.Free(a); err != nil {
			t.Error(err)
		}
	}()
	b := must(t)(h.AllocWait(context.Background(), 1000))
	free(t, p, b)
	if _, err := h.AllocWait(context.Background(), 2<<20); !errors.Is(err, ErrLimit) {
		t.Errorf("more than the quota ever allows: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// TestWaitEnds: a context that ends, and a pool that closes, end the wait.
func TestWaitEnds(t *testing.T) {
	p := newPool(t, Config{MaxBytes: 8 << 20, noJanitor: true})
	a, b := must(t)(p.Alloc(4<<20)), must(t)(p.Alloc(4<<20))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for !p.room.occupied() {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := p.AllocWait(ctx, 100); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrLimit) {
		t.Errorf("AllocWait: %v", err)
	}
	if p.room.occupied() || p.local.paused {
		t.Error("somebody is still waiting")
	}
	done := make(chan error)
	go func() {
		_, err := p.AllocWait(context.Background(), 100)
		done <- err
	}()
	for !p.room.occupied() {
		time.Sleep(time.Millisecond)
	}
	if err := p.Close(); !errors.Is(err, ErrLeak) {
		t.Errorf("Close: %v", err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("AllocWait while the pool closes: %v", err)
	}
	free(t, p, a)
	free(t, p, b)
}

// TestWaitForPool: many goroutines share less memory than they want. Everyone
// gets through, whichever cache the frees went into.
func TestWaitForPool(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		cfg.MaxBytes = 8 << 20
		p := newPool(t, cfg)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				for i := range 200 {
					var bufs [][]byte
					n := []int{100, 20_000, 300_000, 1 << 20}[(i+w)%4]
					for range 1 + (i+w)%3 {
						// A goroutine that holds a buffer must not wait for more: no order
						// of locks would hold among them.
						var b []byte
						var err error
						if len(bufs) == 0 {
							b, err = p.AllocWait(ctx, n)
						} else {
							b, err = p.Alloc(n)
						}
						if err != nil && (len(bufs) == 0 || !errors.Is(err, ErrLimit)) {
							t.Error(err)
							return
						}
						if err == nil {
							bufs = append(bufs, b)
						}
					}
					for _, b := range bufs {
						if err := p.Free(b); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		if p.room.occupied() {
			t.Error("somebody is still waiting")
		}
		checkIdle(t, p)
		if b := must(t)(p.Alloc(100)); p.Free(b) != nil || p.Stats().CachedBytes == 0 {
			t.Error("the caches stayed off after the last waiter")
		}
	})
}
