package bemalloc

import (
	"math/bits"
	"testing"
)

// slowLongest and slowFirst are the obvious twins of the folding functions.
func slowLongest(x uint64) (best uint32) {
	run := uint32(0)
	for i := range 64 {
		if x>>i&1 == 0 {
			run = 0
			continue
		}
		run++
		best = max(best, run)
	}
	return best
}

func slowFirst(x uint64, k, align uint32) uint32 {
	for at := uint32(0); at+k <= 64; at += align {
		if m := runMask(at, k); x&m == m {
			return at
		}
	}
	return 64
}

func TestMasks(t *testing.T) {
	rng := newRand(t)
	check := func(x uint64) {
		if got, want := longestRun(x), slowLongest(x); got != want {
			t.Fatalf("longestRun(%#x) = %d, want %d", x, got, want)
		}
		k, align := 1+rng.Uint32N(64), uint32(1)<<rng.Uint32N(7)
		if got, want := firstRun(x, k, align), slowFirst(x, k, align); got != want {
			t.Fatalf("firstRun(%#x, %d, %d) = %d, want %d", x, k, align, got, want)
		}
	}
	for k := uint32(1); k <= 64; k++ {
		for at := uint32(0); at+k <= 64; at++ {
			check(runMask(at, k))
			check(^runMask(at, k))
		}
	}
	for range 200_000 {
		x := rng.Uint64()
		switch rng.IntN(4) {
		case 0:
			x |= rng.Uint64() | rng.Uint64()
		case 1:
			x &= rng.Uint64()
		case 2:
			x = bits.RotateLeft64(runMask(0, 1+rng.Uint32N(64)), rng.IntN(64)) ^ 1<<rng.IntN(64)
		}
		check(x)
	}
}

func TestFitTree(t *testing.T) {
	rng := newRand(t)
	var tree fitTree
	var twin []uint32
	for range 20_000 {
		if len(twin) == 0 || len(twin) < 300 && rng.IntN(40) == 0 {
			twin = append(twin, 0)
			tree.grow(uint32(len(twin) - 1))
		}
		b, v := rng.IntN(len(twin)), rng.Uint32N(65)
		tree.set(uint32(b), v)
		twin[b] = v
		best := uint32(0)
		for _, v := range twin {
			best = max(best, v)
		}
		if got := tree.longest(); got != best {
			t.Fatalf("longest() = %d, want %d", got, best)
		}
		if best == 0 {
			continue
		}
		k := 1 + rng.Uint32N(best)
		want := 0
		for twin[want] < k {
			want++
		}
		if got := tree.first(k); got != uint32(want) {
			t.Fatalf("first(%d) = %d, want %d", k, got, want)
		}
		if got, ok := tree.next(0, k); !ok || got != uint32(want) {
			t.Fatalf("next(0, %d) = %d, %v, want %d", k, got, ok, want)
		}
	}
}
