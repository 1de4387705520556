package hist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestRecorderAgainstSortedSamples(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	r, parts := New(), []*Recorder{New(), New(), New()}
	var samples []float64
	for i := range 30000 {
		d := time.Duration(math.Exp(rng.Float64()*16) * 100)
		samples = append(samples, float64(d))
		parts[i%3].Record(d)
	}
	for _, p := range parts {
		r.Merge(p)
	}
	slices.Sort(samples)
	var sum, sq float64
	for _, s := range samples {
		sum += s
	}
	mean := sum / float64(len(samples))
	for _, s := range samples {
		sq += (s - mean) * (s - mean)
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > want*tolerance {
			t.Errorf("seed %d: %s = %v, want %v", seed, what, got, want)
		}
	}
	near("mean", r.Mean(), mean, 1e-9)
	near("stdev", r.Stdev(), math.Sqrt(sq/float64(len(samples)-1)), 1e-9)
	near("min", float64(r.Min()), samples[0], 0)
	near("max", float64(r.Max()), samples[len(samples)-1], 0)
	for _, p := range []float64{50, 99, 99.9} {
		near("percentile", float64(r.Percentile(p)), samples[int(math.Ceil(p/100*float64(len(samples))))-1], 2e-3)
	}
	var n int64
	for _, b := range r.Bars() {
		n += b.Count
	}
	if r.Count() != int64(len(samples)) || n != r.Count() {
		t.Errorf("count = %d, bars hold %d, want %d", r.Count(), n, len(samples))
	}
}

func TestRecorderKeepsExtremes(t *testing.T) {
	r := New()
	for _, d := range []time.Duration{-5, 0, 3 * time.Hour} {
		r.Record(d)
	}
	if r.Count() != 3 || r.Min() != 0 || r.Max() != 3*time.Hour {
		t.Errorf("count %d, min %v, max %v; want 3, 0, 3h", r.Count(), r.Min(), r.Max())
	}
	if p := r.Percentile(100); p > 3*time.Hour || p < time.Hour {
		t.Errorf("percentile 100 = %v, want 1h to 3h", p)
	}
	r.Reset()
	if r.Count() != 0 || r.Min() != 0 || r.Max() != 0 || r.Percentile(50) != 0 {
		t.Error("samples left after Reset")
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	r := New()
	if n := testing.AllocsPerRun(100, func() { r.Record(1234) }); n != 0 {
		t.Errorf("Record allocates %v times", n)
	}
}
