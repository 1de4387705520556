package bemalloc

import (
	"errors"
	"testing"
)

// TestCovers: a buffer starts in the range of its own pool only, freed or not.
func TestCovers(t *testing.T) {
	p, q := newPool(t, Config{}), newPool(t, Config{})
	for _, n := range []int{0, 1, 100 << 10, 9 << 20} {
		b := must(t)(p.Alloc(n))
		if !p.Covers(b) || q.Covers(b) || n > 0 && !p.Covers(b[n/2:]) {
			t.Errorf("%d bytes: %v %v", n, p.Covers(b), q.Covers(b))
		}
		free(t, p, b)
		if !p.Covers(b) {
			t.Errorf("%d bytes: not after the free", n)
		}
	}
	if p.Covers(nil) || p.Covers(make([]byte, 8)) {
		t.Error("memory of somebody else")
	}
}

// TestLKey: it is that of MR, for any part of a buffer, and refuses what MR refuses.
func TestLKey(t *testing.T) {
	dev := newRegistrar(t)
	p, q := newPool(t, Config{Registrar: dev}), newPool(t, Config{Registrar: dev})
	for _, n := range []int{1, 64, 5000, 100 << 10, 9 << 20} {
		b, other := must(t)(p.Alloc(n)), must(t)(q.Alloc(n))
		for _, part := range [][]byte{b, b[n/2:], b[:n/2], other, b[:n:n], append([]byte(nil), b...), nil} {
			r, errMR := p.MR(part)
			if key, err := p.LKey(part); key != r.LKey || (err == nil) != (errMR == nil) || err != nil && !errors.Is(err, ErrNotOwned) {
				t.Errorf("part of %d bytes: key %d, %v; MR says %v, %v", n, key, err, r, errMR)
			}
		}
		free(t, p, b)
		free(t, q, other)
	}
}
