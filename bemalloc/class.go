package bemalloc

import "math/bits"

// Size classes: steps of 64 bytes to 512, then four classes per doubling to
// 32 KiB, so that an object is at most 25 % larger than asked for (or 63 bytes).
const (
	numClasses  = 32
	classMask   = numClasses - 1
	linearTop   = 512
	linearSteps = linearTop / objAlign

	magazineSlots = 128                 // most objects that a magazine holds
	magazineMin   = 8                   // fewest, whatever their size
	magazineBytes = 256 << 10           // bytes that a magazine holds between these bounds
	batchMax      = magazineSlots/2 + 1 // most objects moved at once
	spanObjects   = unitSize / objAlign // most objects in a span
)

// classInfo describes one class. magic is ceil(2^64 / size): for any offset d
// below 2^32, d*magic (mod 2^64) < magic exactly when size divides d, and the
// high word of the product is d / size (Lemire, Kaser, Kurz: Faster remainder by
// direct computation, 2019).
type classInfo struct {
	magic uint64
	limit uint32 // bytes of a span that hold objects; the rest is waste
	size  uint32 // object size in bytes
	units uint32 // units of a span
	nobj  uint32 // objects of a span
	cap   uint32 // objects in a magazine
}

var (
	classes    = buildClasses()
	classIndex = buildClassIndex()
)

func buildClasses() (t [numClasses]classInfo) {
	for c := range t {
		size := uint32(c+1) * objAlign
		if c >= linearSteps {
			k := uint32(c - linearSteps)
			base := uint32(linearTop) << (k / 4)
			size = base + base/4*(k%4+1)
		}
		// The fewest units that waste at most 1/16.
		units := uint32(1)
		for units < 4 && (units*unitSize%size)*16 > units*unitSize {
			units *= 2
		}
		n := units * unitSize / size
		t[c] = classInfo{
			magic: ^uint64(0)/uint64(size) + 1,
			limit: n * size,
			size:  size,
			units: units,
			nobj:  n,
			cap:   min(max(magazineBytes/size, magazineMin), magazineSlots),
		}
	}
	return t
}

// buildClassIndex maps ceil(n / 64) to the class of n bytes.
func buildClassIndex() (t [maxSmall/objAlign + 1]uint8) {
	c := 0
	for i := range t {
		if uint32(i)*objAlign > classes[c].size {
			c++
		}
		t[i] = uint8(c)
	}
	return t
}

// classFor gives the class of n bytes, n at most maxSmall.
func classFor(n uint) uint32 { return uint32(classIndex[(n+objAlign-1)>>objShift]) }

// classAligned gives the smallest class for n bytes whose objects all start on a
// multiple of align, a power of two up to maxSmall. Spans start on units, so an
// object is aligned when its size is.
func classAligned(n, align uint) uint32 {
	c := classFor(n)
	for uint(classes[c].size)&(align-1) != 0 {
		c++
	}
	return c
}

// locate splits an offset within a span into the object's number and the offset
// within the object.
func (ci *classInfo) locate(delta uint32) (idx, rem uint32) {
	hi, _ := bits.Mul64(uint64(delta), ci.magic)
	return uint32(hi), delta - uint32(hi)*ci.size
}

// startsObject reports whether an object starts at delta bytes into a span.
func (ci *classInfo) startsObject(delta uint32) bool {
	return uint64(delta)*ci.magic < ci.magic && delta < ci.limit
}

// contains reports whether the n bytes at delta into a span lie in one object.
func (ci *classInfo) contains(delta uint32, n int) bool {
	idx, rem := ci.locate(delta)
	return idx < ci.nobj && uint64(rem)+uint64(n) <= uint64(ci.size)
}
