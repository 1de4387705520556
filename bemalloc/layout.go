package bemalloc

// Sizes as shift and size pairs. An object number is an offset in the
// reservation divided by objAlign, so that a uint32 reaches maxReserve.
const (
	objShift = 6
	objAlign = 1 << objShift // every buffer starts on a cache line

	unitShift = 16
	unitSize  = 1 << unitShift // 64 KiB

	blockShift    = 22
	blockSize     = 1 << blockShift // 4 MiB: two huge pages of 2 MiB
	unitsPerBlock = blockSize / unitSize

	chunkShift     = 26
	blocksPerChunk = 1 << (chunkShift - blockShift)
	unitsPerChunk  = 1 << (chunkShift - unitShift)

	maxSmall   = 32 << 10                   // largest object in a span
	maxReserve = int64(1) << 32 << objShift // 256 GiB
)

// A unitWord says what a unit of 64 KiB holds: the kind in the low byte, and an
// argument. For a unit of a span the argument is how many units back the span
// starts, in the upper half, so that the upper half of the word and the lower half
// of an offset make the offset within the span. The first unit of a run has its length
// and the line at which the buffer starts. Later units have how far back the run
// started when they were last marked, which is a hint: what it names is checked.
//
// Words are plain memory: a unit's word is written before its memory is handed out,
// under the run lock or by the owner of the cache that holds the unit, and a caller
// reads only the words of a buffer it owns. A stray slice may read a word while it
// changes, and gets the old answer or the new; two frees of one buffer at the same time are the
// caller's data race (see Pool.Free).
type unitWord uint32

const (
	kindNone  = 0  // never used
	kindClass = 1  // kindClass + class: unit of a span
	kindOwned = 64 // unit of a span that belongs to a heap with a quota
	kindHead  = 65 // first unit of a run or huge run
	kindOHead = 66 // the same of a heap with a quota
	kindBody  = 67 // later unit of a run; argument: units back to the first, in the upper 24 bits
	kindFreed = 68 // first unit of a freed run, or any unit of a released span
)

func (w unitWord) kind() uint32     { return uint32(w) & 0xff }
func (w unitWord) bodyBack() uint32 { return uint32(w) >> 8 }

// A head word is the kind in 8 bits, the line in 6, and the length in 18: in units
// within a block, and unitsPerBlock more than the blocks of a huge run.
const (
	headLineShift  = 8
	headLines      = 1 << 6
	headUnitsShift = 14
)

// headWord is that of the first of n units, whose buffer starts at the given line
// of 64 bytes.
func headWord(kind, n, line uint32) unitWord {
	if n > unitsPerBlock {
		n = unitsPerBlock + n/unitsPerBlock
	}
	return unitWord(kind | line<<headLineShift | n<<headUnitsShift)
}

// length gives the units of the run that a head word describes.
func (w unitWord) length() uint32 {
	n := uint32(w) >> headUnitsShift
	if n > unitsPerBlock {
		n = (n - unitsPerBlock) * unitsPerBlock
	}
	return n
}

// start gives the offset within the first unit at which a run's buffer starts.
func (w unitWord) start() uint64 {
	return uint64(uint32(w)>>headLineShift%headLines) << objShift
}

// live reports whether the unit is the first of a run in use or part of a span.
func (w unitWord) live() bool { return w.kind() != kindNone && w.kind() < kindBody }

// isHead reports whether a run in use starts here.
func (w unitWord) isHead() bool { return w.kind() == kindHead || w.kind() == kindOHead }
func (w unitWord) back() uint32 { return uint32(w) >> 16 }

// within gives an offset's distance from the start of the span.
func (w unitWord) within(off uint64) uint32 { return uint32(w)&^0xffff | uint32(off)&0xffff }

// small gives the class of the object that starts at off, in a shared span of which
// the word is a unit's.
func (w unitWord) small(off uint64) (class uint32, ok bool) {
	class = w.kind() - kindClass
	return class, class < numClasses && classes[class].startsObject(w.within(off))
}

// run gives the length of the run of at most cachedRun units whose first has the word,
// if its buffer starts at off and does not count against a quota.
func (w unitWord) run(off uint64) (units uint32, ok bool) {
	units = w.length()
	return units, w.kind() == kindHead && w.start() == off%unitSize && units <= cachedRun
}

// units gives the units that n bytes take, at least one.
func units(n int) uint32 { return uint32((max(n, 1) + unitSize - 1) >> unitShift) }

// roundUp rounds n up to a multiple of page, a power of two.
func roundUp(n, page int64) int64 { return (n + page - 1) &^ (page - 1) }
