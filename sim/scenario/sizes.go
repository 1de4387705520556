package scenario

import (
	"math"

	"github.com/byteexpress/byteexpress/sim/des"
)

// sizer draws message sizes.
type sizer struct {
	fixed     int
	mu, sigma float64
	spare     float64 // the second number of a pair
	has       bool
	rng       des.Stream
}

// z99 is the 99th percentile of the normal distribution.
const z99 = 2.3263478740408408

func (z Sizes) sizer(rng des.Stream) *sizer {
	if z.Fixed != 0 {
		return &sizer{fixed: z.Fixed}
	}
	// exp(z99 s - s^2/2) is the 99th percentile over the mean: the smaller root.
	r := &sizer{rng: rng}
	r.sigma = z99 - math.Sqrt(float64(z99*z99)-float64(2*logarithm(float64(z.P99)/float64(z.Mean))))
	r.mu = logarithm(float64(z.Mean)) - float64(r.sigma*r.sigma)/2
	return r
}

// maxDraw bounds what a lognormal distribution may give.
const maxDraw = 1 << 20

// next draws a size: at least 1 byte, and for a lognormal distribution at most 1 MiB.
func (z *sizer) next() int {
	if z.fixed != 0 {
		return z.fixed
	}
	v := exponential(z.mu + float64(z.sigma*z.normal()))
	return int(max(min(v, maxDraw), 1))
}

// normal draws from the standard normal distribution (the polar method of Marsaglia
// and Bray, 1964).
func (z *sizer) normal() float64 {
	if z.has {
		z.has = false
		return z.spare
	}
	for {
		u, v := float64(2*z.rng.Float64())-1, float64(2*z.rng.Float64())-1
		s := float64(u*u) + float64(v*v)
		if s >= 1 || s == 0 {
			continue
		}
		f := math.Sqrt(float64(-2*logarithm(s)) / s)
		z.has, z.spare = true, float64(v*f)
		return float64(u * f)
	}
}

// exponentialTime draws a time from an exponential distribution of a mean.
func exponentialTime(rng *des.Stream, mean des.Time) des.Time {
	return des.Time(float64(mean) * -logarithm(1-rng.Float64()))
}

// logarithm and exponential are here instead of package math, which has machine code
// of its own for some architectures: a run must give the same bytes on all. Every
// product is rounded, so that none is fused with a sum. They are right to some 1e-15.

// logarithm is the natural logarithm of a number above 0.
func logarithm(x float64) float64 {
	m, e := math.Frexp(x) // 0.5 to 1
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	// ln m = 2 atanh t
	t := (m - 1) / (m + 1)
	square, sum, power := float64(t*t), 0.0, t
	for n := 1.0; n < 40; n += 2 {
		sum += power / n
		power = float64(power * square)
	}
	return float64(float64(e)*math.Ln2) + float64(2*sum)
}

// exponential is e to the power of x.
func exponential(x float64) float64 {
	n := math.Floor(x/math.Ln2 + 0.5)
	r := x - float64(n*math.Ln2)
	sum, term := 1.0, 1.0
	for i := 1.0; i < 24; i++ {
		term = float64(term*r) / i
		sum += term
	}
	return math.Ldexp(sum, int(n))
}
