package bemalloc

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestQuotaAfterWait: a heap with a quota has no cache, also after the caches were turned off
// for one who waited: what it allocates counts.
func TestQuotaAfterWait(t *testing.T) {
	p := newPool(t, Config{noJanitor: true})
	h := p.NewHeap(HeapOptions{QuotaBytes: 1 << 20})
	defer func() { _ = h.Close() }()
	p.enter(&p.room)
	p.leave(&p.room)
	var bufs [][]byte
	for range 20 {
		bufs = append(bufs, must(t)(p.Alloc(1000)))
	}
	for _, b := range bufs {
		if err := h.Free(b); err != nil {
			t.Fatal(err)
		}
	}
	b := must(t)(h.Alloc(1000))
	if h.quota.used != 1088 {
		t.Errorf("%d bytes count against the quota", h.quota.used)
	}
	free(t, p, b)
}

// TestHeapWhileWaiting: a heap that is made while somebody waits keeps nothing.
func TestHeapWhileWaiting(t *testing.T) {
	p := newPool(t, Config{noJanitor: true})
	p.enter(&p.room)
	h := p.NewHeap(HeapOptions{})
	defer func() { _ = h.Close() }()
	for _, n := range []int{100, 100_000} {
		b := must(t)(p.Alloc(n))
		if err := h.Free(b); err != nil {
			t.Fatal(err)
		}
	}
	if !h.c.empty() {
		t.Error("the new heap keeps what it frees")
	}
	p.leave(&p.room)
}

// TestOwnHeapGivesWay: what a heap itself caches never stands against its own allocation.
func TestOwnHeapGivesWay(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		cfg.MaxBytes = blockSize
		p := newPool(t, cfg)
		h := p.NewHeap(HeapOptions{})
		defer func() { _ = h.Close() }()
		for _, n := range []int{100, 1000, 10_000, 32 << 10, 100_000} {
			b := must(t)(h.Alloc(n))
			if err := h.Free(b); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		b, err := h.AllocWait(ctx, blockSize)
		if err != nil {
			t.Fatalf("all of the pool, nothing in use: %v", err)
		}
		free(t, p, b)
	})
}

// TestWaitersComeAndGo: when the last one that waited is gone, the caches are on.
func TestWaitersComeAndGo(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		p := newPool(t, cfg)
		h := p.NewHeap(HeapOptions{})
		for range 300 {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 3 {
						p.enter(&p.room)
						p.leave(&p.room)
					}
				})
			}
			wg.Wait()
			p.local.mu.Lock()
			paused := p.local.paused
			p.local.mu.Unlock()
			if paused {
				t.Fatal("nobody waits, and the caches are off")
			}
		}
		_ = h.Close()
	})
}

// TestHeapOpensAgain: requests to flush that come at any moment leave a heap with an open cache.
func TestHeapOpensAgain(t *testing.T) {
	p := newPool(t, Config{noJanitor: true})
	h := p.NewHeap(HeapOptions{})
	defer func() { _ = h.Close() }()
	use := func(n int) {
		b := must(t)(h.Alloc(n))
		if err := h.Free(b); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 100 {
		stop := background(h.c.wantFlush)
		for i := range 2000 {
			use(64 + (round+i*31)%20000)
		}
		stop()
		for range 2 { // the first Free that finds its class off opens them all
			for c := range plainClasses {
				use(int(classes[c].size))
			}
		}
		for c := range plainClasses {
			if h.c.mag[c].limit == 0 {
				t.Fatalf("round %d: class %d stays off", round, c)
			}
		}
	}
}

// TestQuarantineGivesWay: buffers in quarantine are no reason to fail or to wait for ever.
func TestQuarantineGivesWay(t *testing.T) {
	for _, quota := range []int64{0, blockSize} {
		p := newPool(t, Config{MaxBytes: blockSize, Debug: Debug{QuarantineBytes: 1 << 30}, noJanitor: true})
		h := p.NewHeap(HeapOptions{QuotaBytes: quota})
		for range 10 {
			free(t, p, must(t)(h.Alloc(blockSize)))
		}
		b := must(t)(h.Alloc(blockSize))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		got := make(chan error)
		go func() {
			c, err := h.AllocWait(ctx, 100)
			if err == nil {
				err = p.Free(c)
			}
			got <- err
		}()
		for !p.someoneWaits() {
			time.Sleep(time.Millisecond)
		}
		free(t, p, b)
		if err := <-got; err != nil {
			t.Errorf("quota %d: %v", quota, err)
		}
		cancel()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAlignedIsCached: an alignment that every buffer has costs nothing: the caches serve it.
func TestAlignedIsCached(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		cfg.noJanitor = true
		p := newPool(t, cfg)
		h := p.NewHeap(HeapOptions{})
		defer func() { _ = h.Close() }()
		for _, alloc := range []func(n, align int) ([]byte, error){p.AllocAligned, h.AllocAligned} {
			before := p.Stats().BatchTakes
			for range 1000 {
				free(t, p, must(t)(alloc(100, 1)))
			}
			// The pool's cache takes what the heap's gives: a batch for many buffers.
			if n := p.Stats().BatchTakes - before; n > 100 {
				t.Errorf("%d batches were taken for 1000 buffers", n)
			}
		}
		if err := h.Free(must(t)(h.Alloc(100_000))); err != nil {
			t.Fatal(err)
		}
		held := h.c.runs.held
		b := must(t)(h.AllocAligned(100_000, 64))
		if h.c.runs.held != held-units(100_000) {
			t.Errorf("%d units cached after, %d before: the cache did not serve it", h.c.runs.held, held)
		}
		free(t, p, b)
	})
}
