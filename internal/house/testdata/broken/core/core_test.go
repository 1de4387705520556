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
