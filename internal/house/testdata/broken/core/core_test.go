package core

import "testing"

func Example() {}

func Benchmark(b *testing.B) {
	for range b.N {
	}
	for i := 0; i < b.N; i++ {
	}
	_ = b.N // how often it ran: fine
}

// TestCore is case C01, and C04 of another row.
func TestCore(t *testing.T) {}
