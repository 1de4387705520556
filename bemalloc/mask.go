package bemalloc

import "math/bits"

// Free units of a block are the one bits of a uint64. These functions find runs
// of ones by folding: x & x>>1 has a one wherever a run of at least 2 starts.

// longestRun gives the length of the longest run of ones, 0 to 64.
func longestRun(x uint64) uint32 {
	if x == ^uint64(0) {
		return unitsPerBlock
	}
	if x == 0 {
		return 0
	}
	y1 := x & (x >> 1)    // starts of runs of at least 2
	y2 := y1 & (y1 >> 2)  // 4
	y3 := y2 & (y2 >> 4)  // 8
	y4 := y3 & (y3 >> 8)  // 16
	y5 := y4 & (y4 >> 16) // 32
	// Binary search: at holds the starts of runs of at least n.
	n, at := uint32(0), ^uint64(0)
	if t := at & y5; t != 0 {
		at, n = t, 32
	}
	if t := at & (y4 >> n); t != 0 {
		at, n = t, n+16
	}
	if t := at & (y3 >> n); t != 0 {
		at, n = t, n+8
	}
	if t := at & (y2 >> n); t != 0 {
		at, n = t, n+4
	}
	if t := at & (y1 >> n); t != 0 {
		at, n = t, n+2
	}
	if at&(x>>n) != 0 {
		n++
	}
	return n
}

// runStarts gives the positions at which a run of at least k ones starts, k from
// 1 to 64.
func runStarts(x uint64, k uint32) uint64 {
	for n := uint32(1); n < k; {
		step := min(n, k-n)
		x &= x >> step
		n += step
	}
	return x
}

// shortRun gives the lowest position of a run of k ones, k from 1 to 16, or 64, and one
// that is no longer if there is such. It has no loop: run lengths come in no order that a processor could foresee.
func shortRun(x uint64, k uint32) uint32 {
	all, exact := shortRuns(x, k)
	if exact != 0 {
		all = exact
	}
	return uint32(bits.TrailingZeros64(all))
}

// shortRuns gives where a run of at least k ones starts, and where one of just that many.
func shortRuns(x uint64, k uint32) (all, exact uint64) {
	s := &shortSteps[k%uint32(len(shortSteps))]
	y := x & (x >> (s[0] & 63))
	y &= y >> (s[1] & 63)
	y &= y >> (s[2] & 63)
	y &= y >> (s[3] & 63)
	return y, y &^ (x << 1) &^ (x >> (k & 63))
}

// shortSteps are the shifts of runStarts by run length, those left over 0.
var shortSteps = func() (t [32][4]uint8) {
	for k := range t {
		for n, i := 1, 0; n < k && i < len(t[k]); i++ {
			step := min(n, k-n)
			t[k][i] = uint8(step)
			n += step
		}
	}
	return t
}()

// lowOnes has n ones.
var lowOnes = func() (t [32]uint64) {
	for n := range t {
		t[n] = 1<<n - 1
	}
	return t
}()

// alignedBits has a one at every multiple of align, a power of two up to 64.
func alignedBits(align uint32) uint64 {
	x := uint64(1)
	for s := align; s < unitsPerBlock; s *= 2 {
		x |= x << s
	}
	return x
}

// runMask has k ones from position at.
func runMask(at, k uint32) uint64 { return ^uint64(0) >> (unitsPerBlock - k) << at }

// firstRun gives the lowest aligned position of a run of k ones, or 64.
func firstRun(x uint64, k, align uint32) uint32 {
	x = runStarts(x, k)
	if align > 1 {
		x &= alignedBits(align)
	}
	return uint32(bits.TrailingZeros64(x))
}
