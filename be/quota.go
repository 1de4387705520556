package be

import "sync/atomic"

// quota bounds the receive memory of all engines of the node. A long message counts as all
// of it but the part of one socket: who holds that, and takes nothing, does not keep out
// whoever sends a long one.
type quota struct {
	limit int64
	used  atomic.Int64
	short atomic.Bool
	poke  func()
}

// counts is what a message of n bytes counts.
func (q *quota) counts(n int) int64 { return min(int64(n), q.limit-q.limit/quotaShare) }

// Reserve takes n bytes, or none and false.
func (q *quota) Reserve(n int) bool {
	for {
		used := q.used.Load()
		if used+q.counts(n) > q.limit {
			// Say so before the last look, so that a Release in between is seen.
			if q.short.Swap(true) {
				return false
			}
			continue
		}
		if q.used.CompareAndSwap(used, used+q.counts(n)) {
			return true
		}
	}
}

// Release gives n bytes back.
func (q *quota) Release(n int) {
	q.used.Add(-q.counts(n))
	if q.short.Load() && q.short.Swap(false) {
		q.poke()
	}
}
