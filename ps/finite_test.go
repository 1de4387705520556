package ps

import (
	"math"
	"testing"
)

// TestFirstNotFinite plants values in each place of lists of each length.
func TestFirstNotFinite(t *testing.T) {
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xff800001)}
	good := []float32{0, 1, -1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1))}
	for n := range 9 {
		b := make([]byte, 4*n)
		for i := range n {
			putFloat(b, i, good[(i+n)%len(good)])
		}
		if got := firstNotFinite(b); got != -1 {
			t.Errorf("%d finite values: found %d", n, got)
		}
		for at := range n {
			for _, v := range bad {
				was := floatAt(b, at)
				putFloat(b, at, v)
				if got := firstNotFinite(b); got != at {
					t.Errorf("%v at %d of %d: found %d", v, at, n, got)
				}
				putFloat(b, at, was)
			}
		}
	}
}
