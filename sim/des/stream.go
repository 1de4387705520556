package des

import "math/bits"

// Stream is a random stream of one purpose of one entity: its draws depend on
// nothing that others draw, so another host on the fabric shifts nobody's. It is a
// counter, hashed by SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
// number generators", 2014), and a source for math/rand/v2. The zero value is the
// stream of all zeros.
type Stream struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15 // 2^64 / golden ratio, odd: the counter's step

// Mix is the finalizer of SplitMix64: a hash of 64 bits.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// NewStream makes the stream of a purpose of an entity. Kinds and purposes are the
// caller's numbers.
func NewStream(seed uint64, kind uint32, id uint64, purpose uint32) Stream {
	s := Mix(seed + golden)
	s = Mix(s + uint64(kind)<<32 + uint64(purpose) + golden)
	return Stream{Mix(s + id + golden)}
}

// Uint64 draws 64 bits.
func (s *Stream) Uint64() uint64 {
	s.state += golden
	return Mix(s.state)
}

// N draws a number from 0 to n-1, each as likely; 0 if n is less than 2. (Lemire,
// "Fast random integer generation in an interval", 2019.)
func (s *Stream) N(n int64) int64 {
	if n < 2 {
		return 0
	}
	u := uint64(n)
	hi, lo := bits.Mul64(s.Uint64(), u)
	if lo < u {
		for least := -u % u; lo < least; {
			hi, lo = bits.Mul64(s.Uint64(), u)
		}
	}
	return int64(hi)
}

// Float64 draws a number of [0, 1).
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) / (1 << 53) }

// Chance is true with probability p. It draws nothing if p is 0 or less.
func (s *Stream) Chance(p float64) bool { return p > 0 && s.Float64() < p }
