package bemalloc

import "math/bits"

// Size classes: steps of 64 bytes to 512, four to 1 KiB, then eight per doubling to
// 32 KiB. An object is at most 27 % larger than asked for, above 1 KiB at most
// 18 % (or 63 bytes).
//
// Sizes above 512 are odd multiples of 64, as large as the number of objects in
// their span allows. Objects that start at multiples of a power of two would put
// their first lines, which are touched most, into a fraction of the cache's sets.
// The powers of two, which only aligned requests need, are classes of their own
// behind the others.
const (
	linearClasses  = 8  // 64 to 512
	plainClasses   = 51 // those that requests without alignment use; the last is maxSmall
	alignedClasses = 5  // 1 KiB to 16 KiB
	numClasses     = plainClasses + alignedClasses

	magazineSlots = 128                 // most objects that a magazine holds
	magazineMin   = 8                   // fewest, whatever their size
	magazineBytes = 96 << 10            // bytes that a magazine holds between these bounds
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
	c := 0
	add := func(units, size uint32) {
		n := units * unitSize / size
		t[c] = classInfo{
			magic: ^uint64(0)/uint64(size) + 1,
			limit: n * size,
			size:  size,
			units: units,
			nobj:  n,
			cap:   min(max(magazineBytes/size, magazineMin), magazineSlots),
		}
		c++
	}
	for i := range uint32(linearClasses) {
		add(spanUnits((i+1)*objAlign), (i+1)*objAlign)
	}
	add(1, 9*objAlign)
	for base := uint32(linearClasses * objAlign); base < maxSmall; base *= 2 {
		steps := uint32(8)
		if base == linearClasses*objAlign {
			steps = 4
		}
		for i := uint32(1); i <= steps && base+base/steps*i < maxSmall; i++ {
			size := (base+base/steps*i)/objAlign | 1 // in lines, odd
			units := spanUnits(size * objAlign)
			n := units * unitSize / (size * objAlign)
			size = max(size, units*unitSize/objAlign/n-1|1)
			if size *= objAlign; size > t[c-1].size && size < maxSmall-maxSmall/16 { // else too near the next
				add(units, size)
			}
		}
	}
	add(4, maxSmall)
	for size := uint32(1 << 10); size < maxSmall; size *= 2 {
		add(1, size)
	}
	return t
}

// spanUnits gives the fewest units, 1, 2 or 4, whose span wastes at most 1/16.
func spanUnits(size uint32) uint32 {
	units := uint32(1)
	for units < 4 && units*unitSize%size*16 > units*unitSize {
		units *= 2
	}
	return units
}

// buildClassIndex maps ceil(n / 64) to the plain class of n bytes.
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
// multiple of align, n and align (a power of two) at most maxSmall. Spans start on
// units, so an object is aligned when its size is.
func classAligned(n, align uint) uint32 {
	c := classFor(n)
	if align <= objAlign {
		return c
	}
	for ; c < linearClasses; c++ {
		if uint(classes[c].size)&(align-1) == 0 {
			return c
		}
	}
	const least = 10 // log2 of the smallest power of two
	log := uint32(max(bits.Len(max(n, align)-1), least))
	if log-least >= alignedClasses {
		return plainClasses - 1
	}
	return plainClasses + log - least
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
