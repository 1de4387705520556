package be

import "sync/atomic"

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
