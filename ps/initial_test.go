package ps

import (
	"math"
	"testing"
)

func TestInitialValue(t *testing.T) {
	for key := range uint64(100) {
		if v := InitialValue(1, key, 0, 0); math.Float32bits(v) != 0 {
			t.Fatalf("key %d with scale 0: %v (%#x), want +0", key, v, math.Float32bits(v))
		}
		if v := InitialValue(1, key, 0, 2); v < -2 || v >= 2 || v == InitialValue(2, key, 0, 2) {
			t.Fatalf("key %d with scale 2: %v", key, v)
		}
	}
}
