package scenario

import (
	"math"
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
)

// TestSizes: a lognormal distribution has the mean and the 99th percentile that were
// asked for.
func TestSizes(t *testing.T) {
	z := Sizes{Mean: 20_000, P99: 50_000}.sizer(des.NewStream(1, 1, 1, 1))
	const n = 200_000
	draws, sum := make([]int, n), 0
	for i := range draws {
		draws[i] = z.next()
		sum += draws[i]
	}
	slices.Sort(draws)
	if mean, p99 := sum/n, draws[n*99/100]; math.Abs(float64(mean)-20_000) > 200 || math.Abs(float64(p99)-50_000) > 750 {
		t.Errorf("mean %d, 99th percentile %d of %d draws, want 20000 and 50000", mean, p99, n)
	}
	if z := (Sizes{Fixed: 7}).sizer(des.Stream{}); z.next() != 7 {
		t.Error("a fixed size is not")
	}
}

func TestFunctions(t *testing.T) {
	for _, x := range []float64{1e-9, 0.1, 0.5, 0.7, 1, 1.5, 2, math.E, 10, 50_000, 1e12} {
		if got, want := logarithm(x), math.Log(x); math.Abs(got-want) > 2e-15*max(1, math.Abs(want)) {
			t.Errorf("logarithm of %v is %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{-20, -1, -0.1, 0, 0.3, 1, 5, 11.2, 30} {
		if got, want := exponential(x), math.Exp(x); math.Abs(got-want) > 1e-14*want {
			t.Errorf("exponential of %v is %v, want %v", x, got, want)
		}
	}
}

func TestExponentialTime(t *testing.T) {
	rng := des.NewStream(1, 2, 3, 4)
	const n, mean = 100_000, 20 * des.Microsecond
	sum := des.Time(0)
	for range n {
		sum += exponentialTime(&rng, mean)
	}
	if got := sum / n; got < mean*98/100 || got > mean*102/100 {
		t.Errorf("the mean of %d draws is %v, want %v", n, got.Duration(), mean.Duration())
	}
}
