package be

import (
	"sync/atomic"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/mr"
)

// memory is the node's pool as engines see it. It remembers when the pool had
// nothing left, so that the next Free tells the workers.
type memory struct {
	pool  *bemalloc.Pool
	short atomic.Bool
	poke  func()
}

// Alloc gives n bytes of registered memory.
func (m *memory) Alloc(n int) ([]byte, error) {
	b, err := m.pool.Alloc(n)
	if err != nil {
		m.short.Store(true)
	}
	return b, err
}

// Free gives a buffer back.
func (m *memory) Free(b []byte) {
	m.pool.Free(b)
	if m.short.Load() && m.short.Swap(false) {
		m.poke()
	}
}

// Region gives the keys of a buffer.
func (m *memory) Region(b []byte) (mr.Region, error) { return m.pool.MR(b) }

// quota bounds the receive memory of all engines of the node. One message that
// is larger than the whole quota passes when it is alone.
type quota struct {
	limit int64
	used  atomic.Int64
	short atomic.Bool
	poke  func()
}

// Reserve takes n bytes, or none and false.
func (q *quota) Reserve(n int) bool {
	for {
		used := q.used.Load()
		if used > 0 && used+int64(n) > q.limit {
			// Say so before the last look, so that a Release in between is seen.
			if q.short.Swap(true) {
				return false
			}
			continue
		}
		if q.used.CompareAndSwap(used, used+int64(n)) {
			return true
		}
	}
}

// Release gives n bytes back.
func (q *quota) Release(n int) {
	q.used.Add(-int64(n))
	if q.short.Load() && q.short.Swap(false) {
		q.poke()
	}
}
