package psjob

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/ps"
)

// truth knows the right values of all rows at a time when no push is under way.
// Its methods may be called from any goroutine.
type truth struct {
	cfg    *Config
	keys   []uint64       // all keys of the stream, ascending
	rows   []float32      // inference: their rows in this order, if they are not too many
	sums   []atomic.Int64 // training: the sum of the factors pushed to each
	factor []float32      // training: gradients of consecutive rows
	shape  []int64        // training
}

// maxKnown bounds the memory in bytes for rows that are computed beforehand. Beyond
// it the values are computed for each comparison.
const maxKnown = 256 << 20

// Gradients: row r of the template is factorOf(r) times the shape, whose value at
// position i is shapeOf(i). Both are small whole numbers.
const templateRows = 4096

func factorOf(r int) int64 { return int64(ps.Hash(uint64(r))%9) - 4 }

func shapeOf(i int) int64 { return int64(ps.Hash(uint64(i)+1<<40)%7) - 3 }

// exact bounds a sum: times the shape it is still exact in float32 (24 bits).
const exact = 1 << 22

func newTruth(cfg *Config, stream []uint64) *truth {
	t := &truth{cfg: cfg, keys: Distinct(stream)}
	if cfg.Workload != Training {
		if cfg.Verify && len(t.keys)*cfg.rowBytes() <= maxKnown {
			t.rows = make([]float32, len(t.keys)*cfg.Dim)
			for i, key := range t.keys {
				for j := range cfg.Dim {
					t.rows[i*cfg.Dim+j] = ps.InitialValue(cfg.Seed, key, j, 1)
				}
			}
		}
		return t
	}
	t.sums = make([]atomic.Int64, len(t.keys))
	t.shape = make([]int64, cfg.Dim)
	for i := range t.shape {
		t.shape[i] = shapeOf(i)
	}
	rows := templateRows + cfg.MaxBytes/cfg.rowBytes() + 1
	t.factor = make([]float32, rows*cfg.Dim)
	for r := range rows {
		for i := range cfg.Dim {
			t.factor[r*cfg.Dim+i] = float32(factorOf(r) * t.shape[i])
		}
	}
	return t
}

// gradients gives those of a request: the template's from a place that follows
// from the request on. They are read-only.
func (t *truth) gradients(r request) []float32 {
	first := r.from % templateRows
	return t.factor[first*t.cfg.Dim : (first+r.n)*t.cfg.Dim]
}

// push counts the gradients of a request as applied to its keys.
func (t *truth) push(keys []uint64, from int) {
	first := from % templateRows
	for r, key := range keys {
		if i, ok := slices.BinarySearch(t.keys, key); ok {
			t.sums[i].Add(factorOf(first + r))
		}
	}
}

// check compares a row with what it must be, bit by bit.
func (t *truth) check(key uint64, row []float32) error {
	if len(row) != t.cfg.Dim {
		return errors.Errorf("key %#x: a row of %d values, want %d", key, len(row), t.cfg.Dim)
	}
	at, ok := slices.BinarySearch(t.keys, key)
	switch {
	case !ok:
		return errors.Errorf("key %#x is not in the stream", key)
	case t.cfg.Workload == Training:
		return t.checkSum(key, t.sums[at].Load(), row)
	case t.rows == nil:
		for i, got := range row {
			if want := ps.InitialValue(t.cfg.Seed, key, i, 1); math.Float32bits(got) != math.Float32bits(want) {
				return wrongValue(key, i, got, want)
			}
		}
		return nil
	}
	known := t.rows[at*t.cfg.Dim:][:len(row)]
	for i, got := range row {
		if math.Float32bits(got) != math.Float32bits(known[i]) {
			return wrongValue(key, i, got, known[i])
		}
	}
	return nil
}

// checkSum compares a row that was pushed to.
func (t *truth) checkSum(key uint64, sum int64, row []float32) error {
	if sum > exact || sum < -exact {
		return errors.Errorf("key %#x: a sum of %d is not exact in float32: run for a shorter time", key, sum)
	}
	shape := t.shape[:len(row)]
	for i, got := range row {
		if want := float32(-sum * shape[i]); math.Float32bits(got) != math.Float32bits(want) {
			return wrongValue(key, i, got, want)
		}
	}
	return nil
}

func wrongValue(key uint64, i int, got, want float32) error {
	return errors.Errorf("key %#x value %d: got %v (%#08x), want %v (%#08x)", key, i, got, math.Float32bits(got), want, math.Float32bits(want))
}
