package be

import (
	"sync/atomic"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/mr"
)

// memoryAccess is what peers may do with the node's memory once they were told its
// keys: write where they were granted it, and in get mode read what was offered.
const memoryAccess = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead

// memory is the node's pool as engines see it. It remembers when the pool had
// nothing left, so that the next Free tells the workers.
type memory struct {
	pool   *bemalloc.Pool
	short  atomic.Bool
	poke   func()
	damage atomic.Pointer[bemalloc.CorruptError] // the first that a Free found
}

// Alloc gives n bytes of registered memory.
func (m *memory) Alloc(n int) ([]byte, error) {
	b, err := m.pool.Alloc(n)
	if err != nil {
		m.noteDamage(err)
		m.short.Store(true)
	}
	return b, err
}

// Free gives a buffer back. The pool counts what is wrong with it, and the first
// damage is kept for Close to report.
func (m *memory) Free(b []byte) {
	if err := m.pool.Free(b); err != nil {
		m.noteDamage(err)
	}
	if m.short.Load() && m.short.Swap(false) {
		m.poke()
	}
}

// noteDamage keeps err if it is the first that tells of damaged memory.
func (m *memory) noteDamage(err error) {
	var damage *bemalloc.CorruptError
	if errors.As(err, &damage) {
		m.damage.CompareAndSwap(nil, damage)
	}
}

// damaged gives the damage that was found, as an error.
func (m *memory) damaged() error {
	if d := m.damage.Load(); d != nil {
		return d
	}
	return nil
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
