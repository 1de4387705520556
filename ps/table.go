package ps

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/archon"
)

// chunkBytes is about how much of the table is allocated at once. Rows never move:
// growing allocates another chunk.
const chunkBytes = 4 << 20

// table holds the rows of a shard that were touched. It has no lock; only the loans
// of its rows have.
type table struct {
	dim        int
	stride     int // values a slot: a row, and as much of the optimizer's
	seed       uint64
	scale      float32
	memory     Memory
	index      []indexEntry // open addressing by the hash's low bits, at most three quarters full
	chunks     []chunk
	chunkShift int    // slots a chunk, as a power of two
	rows       int    // keys
	slots      int    // in use or free
	limit      uint32 // slots above it are being given up
	loans      loans
}

// chunk is the memory of some slots; a slot has room for a row.
type chunk struct {
	values   []float32
	raw      []byte         // of memory; nil: Go's
	lent     []atomic.Int32 // by slot, see loans
	versions []uint64       // by slot
}

type indexEntry struct {
	key uint64
	row uint32 // 1 + number of the slot; 0: free
}

func newTable(cfg *Config) *table {
	stride := cfg.Dim
	if cfg.Optimizer == Adagrad {
		stride *= 2
	}
	perChunk := max(1, min(chunkBytes/(4*stride), cfg.MaxRows))
	t := &table{
		dim: cfg.Dim, stride: stride, seed: cfg.Seed, scale: cfg.InitialScale, memory: cfg.Memory,
		index: make([]indexEntry, 64), chunkShift: bits.Len(uint(perChunk)) - 1, limit: noLimit,
	}
	t.loans.limit = noLimit
	return t
}

// find gives 1 + the number of the key's slot, or 0.
func (t *table) find(key, hash uint64) uint32 {
	mask := uint64(len(t.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &t.index[i]
		if e.row == 0 || e.key == key {
			return e.row
		}
	}
}

// row gives the values of a row by what find and create give.
func (t *table) row(n uint32) []float32 {
	return t.slot(n)[:t.dim:t.dim]
}

// squares gives what Adagrad keeps of a row.
func (t *table) squares(n uint32) []float32 { return t.slot(n)[t.dim:] }

// slot gives the values of a row and of its optimizer.
func (t *table) slot(n uint32) []float32 {
	n--
	from := int(n&(1<<t.chunkShift-1)) * t.stride
	return t.chunks[n>>t.chunkShift].values[from : from+t.stride : from+t.stride]
}

// version counts the gradients that a row got.
func (t *table) version(n uint32) *uint64 {
	n--
	return &t.chunks[n>>t.chunkShift].versions[n&(1<<t.chunkShift-1)]
}

// newSlot gives 1 + the number of a slot that nobody uses.
func (t *table) newSlot() (uint32, error) {
	n := t.loans.takeFree()
	if n == 0 && t.limit != noLimit {
		t.cancelShrink()
		n = t.loans.takeFree()
	}
	if n != 0 {
		return n, nil
	}
	if t.slots == len(t.chunks)<<t.chunkShift {
		c := chunk{lent: make([]atomic.Int32, 1<<t.chunkShift), versions: make([]uint64, 1<<t.chunkShift)}
		if t.memory == nil {
			c.values = make([]float32, t.stride<<t.chunkShift)
		} else {
			raw, err := t.memory.Alloc(4 * t.stride << t.chunkShift)
			if err != nil {
				return 0, &archon.Error{Code: archon.ResourceExhausted, Message: "memory of the table", Cause: err, Retryable: true}
			}
			c.raw, c.values = raw, asFloats(raw)
		}
		t.chunks = append(t.chunks, c)
	}
	t.slots++
	return uint32(t.slots), nil
}

// free gives the memory back.
func (t *table) free() {
	for i := range t.chunks {
		if c := &t.chunks[i]; c.raw != nil {
			t.memory.Free(c.raw)
		}
	}
	t.chunks, t.index, t.rows, t.slots, t.limit = nil, make([]indexEntry, 64), 0, 0, noLimit
}

// create makes the key's row, which is not there, with its initial values.
func (t *table) create(key, hash uint64) (uint32, error) {
	n, err := t.newSlot()
	if err != nil {
		return 0, err
	}
	if 4*(t.rows+1) > 3*len(t.index) {
		t.growIndex()
	}
	t.rows++
	t.place(indexEntry{key: key, row: n}, hash)
	values, start := t.row(n), initialRow(t.seed, key)
	for i := range values {
		values[i] = start.value(i, t.scale)
	}
	clear(t.slot(n)[t.dim:])
	*t.version(n) = 0
	return n, nil
}

// set makes a row what appendRow wrote of it, but for its key.
func (t *table) set(n uint32, b []byte) {
	*t.version(n) = binary.LittleEndian.Uint64(b[8:])
	values := t.slot(n)
	for i := range values {
		values[i] = floatAt(b[rowHead:], i)
	}
}

// makeWritable lets a key's row, which is in slot old, be changed. If that is lent, it
// stays as it is, and the key gets a copy in another slot.
func (t *table) makeWritable(key, hash uint64, old uint32) error {
	if t.lent(old).Load() == 0 {
		return nil
	}
	n, err := t.newSlot()
	if err != nil {
		return err
	}
	copy(t.slot(n), t.slot(old))
	*t.version(n) = *t.version(old)
	t.entry(key, hash).row = n
	t.retire(old)
	return nil
}

// entry is the index entry of a key that is there.
func (t *table) entry(key, hash uint64) *indexEntry {
	mask := uint64(len(t.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if e := &t.index[i]; e.key == key && e.row != 0 {
			return e
		}
	}
}

func (t *table) growIndex() {
	old := t.index
	t.index = make([]indexEntry, 2*len(old))
	for _, e := range old {
		if e.row != 0 {
			t.place(e, Hash(e.key))
		}
	}
}

func (t *table) place(e indexEntry, hash uint64) {
	mask := uint64(len(t.index) - 1)
	i := hash & mask
	for t.index[i].row != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = e
}
