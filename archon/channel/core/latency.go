package core

import (
	"math/bits"
	"time"
)

// Latency estimates a quantile of recent latencies. The zero value is empty. It
// belongs to one goroutine at a time.
type Latency struct {
	counts [latencyBuckets]uint32
	total  uint32
	fresh  uint32        // samples since the quantile was computed
	value  time.Duration // computed last; 0: not enough samples
}

const (
	// Each power of two nanoseconds has 8 buckets: a bucket is at most 1/8 wide.
	latencySub     = 3
	latencyBuckets = (64 - latencySub) << latencySub

	latencyMin    = 32   // samples before there is an estimate
	latencyEvery  = 64   // samples between two computations
	latencyMemory = 4096 // samples after which the weight of old ones is halved
)

// Add takes a sample, and computes the quantile q of recent ones now and then.
func (l *Latency) Add(d time.Duration, q float64) {
	l.counts[latencyBucket(d)]++
	l.total++
	l.fresh++
	if l.total < latencyMin || l.fresh < latencyEvery && l.value != 0 {
		return
	}
	l.fresh = 0
	l.value = l.quantile(q)
	if l.total >= latencyMemory {
		l.total = 0
		for i := range l.counts {
			l.counts[i] /= 2
			l.total += l.counts[i]
		}
	}
}

// Quantile is the estimate; 0 while there are too few samples.
func (l *Latency) Quantile() time.Duration { return l.value }

func (l *Latency) quantile(q float64) time.Duration {
	rank := uint32(q * float64(l.total))
	seen := uint32(0)
	for i, n := range l.counts {
		if seen += n; seen > rank {
			return latencyUpper(i)
		}
	}
	return latencyUpper(latencyBuckets - 1)
}

func latencyBucket(d time.Duration) int {
	v := uint64(max(d, 1))
	exp := bits.Len64(v) - 1
	if exp < latencySub {
		return int(v) // exact; below the first full power
	}
	sub := v >> (exp - latencySub) & (1<<latencySub - 1)
	return (exp-latencySub+1)<<latencySub + int(sub)
}

// latencyUpper is the end of a bucket.
func latencyUpper(i int) time.Duration {
	group, sub := i>>latencySub, uint64(i)&(1<<latencySub-1)
	if group == 0 {
		return time.Duration(i + 1)
	}
	return time.Duration(min((1<<latencySub+sub+1)<<(group-1), 1<<63-1))
}
