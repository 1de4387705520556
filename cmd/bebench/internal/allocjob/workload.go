package allocjob

import "math"

const (
	tableSize = 4096
	pageSize  = 4096

	// handed of 1024 buffers go to another thread: about 10 %.
	handed = 102
)

// Workload is one of the two definitions.
type Workload struct {
	Name       string
	Min, Max   uint32 // bytes
	Slots      uint32 // live buffers a thread, a power of two
	Batch      uint32 // buffers handed over at once
	Batches    uint32 // batches that a thread may have in flight
	Poll       uint32 // iterations between looks into the mailbox, a power of two
	Iterations uint64 // of all threads together
	size       func(u, lo, span float64) float64
}

// Large and Small are the workloads.
var (
	Large = Workload{
		Name: "large", Min: 65536, Max: 1048576,
		Slots: 64, Batch: 4, Batches: 8, Poll: 8, Iterations: 120_000,
		// Exponential with scale span/5, cut at the maximum.
		size: func(u, lo, span float64) float64 {
			return float64(-(span / 5) * math.Log(1-float64(u*(1-math.Exp(-5)))))
		},
	}
	Small = Workload{
		Name: "small", Min: 16, Max: 16384,
		Slots: 4096, Batch: 32, Batches: 64, Poll: 64, Iterations: 6_000_000,
		// A density that falls linearly to zero at the maximum.
		size: func(u, lo, span float64) float64 { return float64(span * (1 - math.Sqrt(1-u))) },
	}
)

// table builds the sizes that random numbers select from. The conversions to
// float64 keep products from being fused with additions, which would round
// otherwise on some machines.
func (w *Workload) table() (t [tableSize]uint32) {
	lo, span := float64(w.Min), float64(w.Max-w.Min)
	for k := range t {
		u := (float64(k) + 0.5) / tableSize
		t[k] = uint32(lo + math.Floor(w.size(u, lo, span)))
	}
	return t
}

// hash is FNV-1a 64 over the table's entries as little-endian uint32.
func hash(t *[tableSize]uint32) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, v := range t {
		for b := range 4 {
			h = (h ^ uint64(v>>(8*b)&255)) * 0x100000001b3
		}
	}
	return h
}

// nominal is the mean live set of one thread in bytes.
func (w *Workload) nominal(t *[tableSize]uint32) uint64 {
	sum := uint64(0)
	for _, v := range t {
		sum += uint64(v)
	}
	return sum / tableSize * uint64(w.Slots)
}

// splitMix is splitmix64.
type splitMix uint64

func newSplitMix(thread int) splitMix {
	return splitMix(0x42455F616C6C6F63 + uint64(thread)*0xD1B54A32D192ED03)
}

func (s *splitMix) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
