package bemalloc

import (
	"errors"
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
