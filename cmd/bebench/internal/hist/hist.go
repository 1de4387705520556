// Package hist records latencies without dropping a sample: percentiles from an
// HDR histogram, extremes, mean and deviation exactly.
package hist

import (
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// highest is the longest latency that the histogram tells apart; longer ones
// count as this one in percentiles. Extremes, mean and deviation stay exact.
const highest = int64(time.Hour)

// digits is the precision of percentiles: 3 significant decimal digits.
const digits = 3

// Recorder collects latencies. It belongs to one goroutine; merge several at the
// end. Record does not allocate.
type Recorder struct {
	h        *hdrhistogram.Histogram
	n        int64
	min, max int64
	sum      int64  // in ns: 2^63 are 292 years
	hi, lo   uint64 // 128-bit sum of squares
}

// New makes an empty recorder.
func New() *Recorder {
	return &Recorder{h: hdrhistogram.New(1, highest, digits), min: math.MaxInt64}
}

// Record adds one latency. A clock that went backwards counts as 0.
func (r *Recorder) Record(d time.Duration) {
	v := max(int64(d), 0)
	r.n++
	r.min = min(r.min, v)
	r.max = max(r.max, v)
	r.sum += v
	r.square(bits.Mul64(uint64(v), uint64(v)))
	// Cannot fail: the value is within the histogram's range.
	_ = r.h.RecordValue(min(v, highest))
}

// square adds to the sum of squares.
func (r *Recorder) square(hi, lo uint64) {
	var carry uint64
	r.lo, carry = bits.Add64(r.lo, lo, 0)
	r.hi, _ = bits.Add64(r.hi, hi, carry)
}

// Merge adds all samples of o, which stays as it is.
func (r *Recorder) Merge(o *Recorder) {
	if o == nil || o.n == 0 {
		return
	}
	r.sum += o.sum
	r.square(o.hi, o.lo)
	r.n += o.n
	r.min = min(r.min, o.min)
	r.max = max(r.max, o.max)
	r.h.Merge(o.h)
}

// Reset forgets all samples and keeps the memory.
func (r *Recorder) Reset() {
	r.h.Reset()
	*r = Recorder{h: r.h, min: math.MaxInt64}
}

// Count is the number of samples.
func (r *Recorder) Count() int64 { return r.n }

// Min is the shortest latency, 0 without samples.
func (r *Recorder) Min() time.Duration {
	if r.n == 0 {
		return 0
	}
	return time.Duration(r.min)
}

// Max is the longest latency.
func (r *Recorder) Max() time.Duration { return time.Duration(r.max) }

// Mean is the exact mean in nanoseconds.
func (r *Recorder) Mean() float64 {
	if r.n == 0 {
		return 0
	}
	return float64(r.sum) / float64(r.n)
}

// Stdev is the exact deviation of the samples in nanoseconds, 0 for fewer than 2.
func (r *Recorder) Stdev() float64 {
	if r.n < 2 {
		return 0
	}
	// (n * sum of squares - sum^2) / (n * (n-1)), exact up to the division.
	squares := new(big.Int).SetUint64(r.hi)
	squares.Lsh(squares, 64).Add(squares, new(big.Int).SetUint64(r.lo))
	n, sum := big.NewInt(r.n), big.NewInt(r.sum)
	over := squares.Mul(squares, n).Sub(squares, sum.Mul(sum, sum))
	variance, _ := new(big.Rat).SetFrac(over, n.Mul(n, big.NewInt(r.n-1))).Float64()
	return math.Sqrt(variance)
}

// Percentile is the latency that p percent of the samples do not exceed, to 3
// digits, and within the extremes.
func (r *Recorder) Percentile(p float64) time.Duration {
	if r.n == 0 {
		return 0
	}
	return time.Duration(min(max(r.h.ValueAtQuantile(p), r.min), r.max))
}

// Bar is one bar of the histogram: so many samples in [From, To].
type Bar struct {
	From, To time.Duration
	Count    int64
}

// Bars lists the histogram's bars that are not empty, by ascending latency.
func (r *Recorder) Bars() []Bar {
	var bars []Bar
	for _, b := range r.h.Distribution() {
		if b.Count != 0 {
			bars = append(bars, Bar{time.Duration(b.From), time.Duration(b.To), b.Count})
		}
	}
	return bars
}
