package bemalloc

import "math/bits"

// span is the record of a run that holds objects of one class, kept at the
// run's first unit. Guarded by the lock of its central list. Of a run that is a
// large buffer it holds the owner, which does not change while that lives.
type span struct {
	free       [spanObjects / 64]uint64 // bit i of word w: object 64w+i is free
	next, prev uint32                   // neighbours in the central list, as unit + 1
	nobj       uint16                   // 0: not a span
	used       uint16                   // objects in caches or in use
	words      uint16                   // bit w: free[w] is not 0
	listed     bool
	class      uint32
	owner      uint32 // heap with a quota that this span or run belongs to; 0: none
}

// reset makes every object free.
func (s *span) reset(class, nobj, owner uint32) {
	*s = span{class: class, nobj: uint16(nobj), owner: owner}
	for w := uint32(0); nobj > 0; w++ {
		k := min(nobj, 64)
		s.free[w] = ^uint64(0) >> (64 - k)
		s.words |= 1 << w
		nobj -= k
	}
}

// take moves free objects into buf as object numbers: first is that of the
// span's start, step the size in objAlign. It returns how many.
func (s *span) take(buf []uint32, first, step uint32) int {
	n := 0
	for s.words != 0 && n < len(buf) {
		w := uint32(bits.TrailingZeros16(s.words))
		x := s.free[w&15]
		for x != 0 && n < len(buf) {
			i := uint32(bits.TrailingZeros64(x))
			x &= x - 1
			buf[n] = first + (w*64+i)*step
			n++
		}
		s.free[w&15] = x
		if x == 0 {
			s.words &^= 1 << w
		}
	}
	s.used += uint16(n)
	return n
}

// put makes object idx free. It reports false if it is free already.
func (s *span) put(idx uint32) bool {
	w, bit := idx/64&15, uint64(1)<<(idx%64)
	if s.free[w]&bit != 0 {
		return false
	}
	s.free[w] |= bit
	s.words |= 1 << w
	s.used--
	return true
}
