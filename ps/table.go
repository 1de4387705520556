package ps

import (
	"math/bits"
)

// chunkBytes is about how much of the table is allocated at once. Rows never move:
// growing allocates another chunk.
const chunkBytes = 4 << 20

// table holds the rows of a shard that were touched. It has no lock.
type table struct {
	dim        int
	seed       uint64
	scale      float32
	index      []indexEntry // open addressing by the hash's low bits, at most three quarters full
	chunks     [][]float32
	chunkShift int // rows a chunk, as a power of two
	rows       int
}

type indexEntry struct {
	key uint64
	row uint32 // 1 + number of the row; 0: free
}

func newTable(dim int, seed uint64, scale float32) *table {
	perChunk := max(1, chunkBytes/(4*dim))
	return &table{
		dim: dim, seed: seed, scale: scale, index: make([]indexEntry, 64), chunkShift: bits.Len(uint(perChunk)) - 1,
	}
}

// find gives 1 + the number of the key's row, or 0.
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
	n--
	from := int(n&(1<<t.chunkShift-1)) * t.dim
	return t.chunks[n>>t.chunkShift][from : from+t.dim : from+t.dim]
}

// create makes the key's row, which is not there, with its initial values.
func (t *table) create(key, hash uint64) uint32 {
	if 4*(t.rows+1) > 3*len(t.index) {
		t.growIndex()
	}
	if t.rows == len(t.chunks)<<t.chunkShift {
		t.chunks = append(t.chunks, make([]float32, t.dim<<t.chunkShift))
	}
	t.rows++
	n := uint32(t.rows)
	t.place(indexEntry{key: key, row: n}, hash)
	values, start := t.row(n), initialRow(t.seed, key)
	for i := range values {
		values[i] = start.value(i, t.scale)
	}
	return n
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
