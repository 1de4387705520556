package core

import "testing"

func Example() {}

func Benchmark(b *testing.B) {
	for range b.N {
	}
}
