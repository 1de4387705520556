package bemalloc

import (
	"sync/atomic"

	"github.com/byteexpress/byteexpress/mr"
)

// blockState is what a block is used for.
type blockState uint8

const (
	blockClosed  blockState = iota // address space only
	blockOpening                   // being backed and registered, or undone
	blockOpen                      // its units serve runs
	blockHuge                      // part of a huge run: in use, or cached as free
	blockParked                    // deregistration failed: mapped, never reused
)

// block describes 4 MiB of the reservation. Guarded by the run lock, but for the
// region, which does not change while an allocation in the block lives.
type block struct {
	free      uint64 // bit u: unit u is free (blockOpen only)
	region    mr.Region
	idleSince int64  // when it became wholly free, in ns of the pool's clock
	length    uint32 // blocks in the registration; 0 in all but its first block
	state     blockState
}

// chunk holds the records of 64 MiB of the reservation. Chunks are made on
// demand, never move and hold no pointers.
type chunk struct {
	blocks [blocksPerChunk]block
	spans  [unitsPerChunk]span // indexed by the span's first unit
}

// table finds the records of an offset in the reservation.
type table struct {
	words  []unitWord              // one per unit of the reservation; touched as units come into use
	chunks []atomic.Pointer[chunk] // one per 64 MiB of the reservation
	more   [][]mr.Region           // [device-1][block]: regions with further devices
}

func newTable(size int64, devices int) table {
	t := table{
		words:  make([]unitWord, size>>unitShift),
		chunks: make([]atomic.Pointer[chunk], (size+1<<chunkShift-1)>>chunkShift),
	}
	if devices > 1 {
		t.more = make([][]mr.Region, devices-1)
		for i := range t.more {
			t.more[i] = make([]mr.Region, size>>blockShift)
		}
	}
	return t
}

// word and setWord are for the word of a unit. Who looks for the start of a buffer, or
// frees what it does not own, reads words that others write meanwhile.
func (t *table) word(u uint32) unitWord       { return unitWord(load((*uint32)(&t.words[u]))) }
func (t *table) setWord(u uint32, w unitWord) { store((*uint32)(&t.words[u]), uint32(w)) }

// at gives the word of the unit that an offset is in: kindNone beyond the reservation.
func (t *table) at(off uint64) unitWord {
	if off>>unitShift >= uint64(len(t.words)) {
		return kindNone
	}
	return unitWord(load((*uint32)(&t.words[off>>unitShift])))
}

// ensure makes the records of block b. Called under the run lock.
func (t *table) ensure(b uint32) {
	if p := &t.chunks[b/blocksPerChunk]; p.Load() == nil {
		p.Store(new(chunk))
	}
}

// block gives the record of a block that was ensured.
func (t *table) block(b uint32) *block {
	return &t.chunks[b/blocksPerChunk].Load().blocks[b%blocksPerChunk]
}

// span gives the span record of a unit whose block was ensured.
func (t *table) span(u uint32) *span {
	return &t.chunks[u/unitsPerChunk].Load().spans[u%unitsPerChunk]
}

// head finds the run that unit u is part of: its first unit and that one's word,
// which is a head's only if there is such a run. The units of a run that a cache
// handed out say what they were part of before, so that a word which is none of a
// run or span in use says nothing; then the nearest one before it that is, in the
// block, decides.
func (t *table) head(u uint32) (first uint32, w unitWord) {
	w = t.word(u)
	if w.kind() == kindBody && w.bodyBack() <= u {
		if h := t.word(u - w.bodyBack()); h.isHead() && h.length() > w.bodyBack() {
			return u - w.bodyBack(), h
		}
	}
	first = u
	for !w.live() && first%unitsPerBlock != 0 {
		first--
		w = t.word(first)
	}
	if w.isHead() && w.length() <= u-first {
		w = kindNone
	}
	return first, w
}

// mark writes the words of the n units of a run that starts at u: kindHead or
// kindOHead for a run, anything else for a span or what is left of one.
func (t *table) mark(u, n, kind uint32) {
	if kind != kindHead && kind != kindOHead {
		for i := range n {
			t.setWord(u+i, unitWord(kind|i<<16))
		}
		return
	}
	t.setWord(u, headWord(kind, n, 0))
	for i := uint32(1); i < n; i++ {
		t.setWord(u+i, unitWord(kindBody|i<<8))
	}
}

// setRegion stores device d's region of block b.
func (t *table) setRegion(d int, b uint32, r mr.Region) {
	if d == 0 {
		t.block(b).region = r
	} else {
		t.more[d-1][b] = r
	}
}

// region gives device d's region of block b.
func (t *table) region(d int, b uint32) mr.Region {
	if d == 0 {
		return t.block(b).region
	}
	return t.more[d-1][b]
}
