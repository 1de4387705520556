package bemalloc

import (
	"errors"
	"math"
	"testing"
)

// newPool makes a pool that the test must have emptied when it ends.
func newPool(t testing.TB, cfg Config) *Pool {
	t.Helper()
	if cfg.ReserveBytes == 0 {
		cfg.ReserveBytes = 1 << 30
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// must gives the buffer of an allocation that may not fail: must(t)(p.Alloc(n)).
func must(t testing.TB) func([]byte, error) []byte {
	return func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatalf("alloc: %v", err)
		}
		return b
	}
}

func free(t testing.TB, p *Pool, b []byte) {
	t.Helper()
	if err := p.Free(b); err != nil {
		t.Fatalf("free %d bytes: %v", len(b), err)
	}
}

func TestAllocSizes(t *testing.T) {
	p := newPool(t, Config{})
	for _, n := range []int{0, 1, 63, 64, 65, 512, 513, 32 << 10, 32<<10 + 1, 64 << 10, 4<<20 - 1, 4 << 20, 4<<20 + 1, 9 << 20} {
		b, err := p.Alloc(n)
		if err != nil {
			t.Fatalf("Alloc(%d): %v", n, err)
		}
		if len(b) != n || cap(b) != n {
			t.Errorf("Alloc(%d): len %d cap %d", n, len(b), cap(b))
		}
		for i := range b {
			b[i] = byte(n)
		}
		if r, err := p.MR(b); err != nil || n > 0 && !r.Contains(r.Addr, uint64(n)) {
			t.Errorf("MR of %d bytes: %v, %v", n, r, err)
		}
		if n > 1 {
			if err := p.Free(b[1:]); !errors.Is(err, ErrBadFree) {
				t.Errorf("Free(b[1:]) of %d: %v", n, err)
			}
		}
		free(t, p, b)
		if err := p.Free(b); !errors.Is(err, ErrDoubleFree) {
			t.Errorf("second Free of %d: %v", n, err)
		}
	}
}

// TestHugeSizes: sizes that no memory can hold are refused, whatever is added to them.
func TestHugeSizes(t *testing.T) {
	for _, debug := range []Debug{{}, {Check: true}, {Guard: true}, {Guard: true, Poison: true, Sites: true, QuarantineBytes: 1 << 20}} {
		p := newPool(t, Config{Debug: debug, noJanitor: true})
		h := p.NewHeap(HeapOptions{})
		q := p.NewHeap(HeapOptions{QuotaBytes: math.MaxInt64})
		for _, n := range []int{math.MaxInt, math.MaxInt - 1, math.MaxInt - 63, math.MaxInt - 64, math.MaxInt - blockSize, math.MaxInt - blockSize + 1, 1 << 40, 1<<38 + 1, math.MinInt, math.MinInt + 63, -1, -64} {
			for _, align := range []int{1, 64, 4096, blockSize} {
				want := ErrTooLarge
				if n < 0 {
					want = ErrBadAlign
				}
				for i, a := range []func() ([]byte, error){
					func() ([]byte, error) { return p.AllocAligned(n, align) },
					func() ([]byte, error) { return h.AllocAligned(n, align) },
					func() ([]byte, error) { return q.AllocAligned(n, align) },
					func() ([]byte, error) { return p.Alloc(n) },
					func() ([]byte, error) { return h.Alloc(n) },
					func() ([]byte, error) { return q.Alloc(n) },
				} {
					if _, err := a(); !errors.Is(err, want) && !errors.Is(err, ErrLimit) {
						t.Errorf("%d: alloc of %d aligned %d: %v", i, n, align, err)
					}
				}
			}
		}
		for _, align := range []int{0, -1, 3, blockSize * 2, math.MinInt, math.MaxInt} {
			if _, err := p.AllocAligned(1, align); !errors.Is(err, ErrBadAlign) {
				t.Errorf("align %d: %v", align, err)
			}
		}
		_ = h.Close()
		_ = q.Close()
		if s := p.Stats(); s.InUseBytes != 0 {
			t.Errorf("%d bytes in use", s.InUseBytes)
		}
	}
}
