package bemalloc

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Budget bounds the registered bytes of several pools together, such as the key
// domains of one process. A pool that finds it used up has the others give back what
// they hold free before its request fails with a LimitError. AllocWait does not wait
// for a Budget: what is freed to one pool wakes nobody of another.
type Budget struct {
	max  int64
	used atomic.Int64 // bytes that the pools have committed

	mu    sync.Mutex // held while members give back, so that none closes meanwhile
	pools []*Pool
}

// NewBudget makes a budget of max bytes; 0 is no limit.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Used is the number of bytes that count against the budget.
func (b *Budget) Used() int64 { return b.used.Load() }

// take counts n bytes, or says why not. The budget may be nil.
func (b *Budget) take(n int64) error {
	if b == nil {
		return nil
	}
	for {
		used := b.used.Load()
		if b.max > 0 && used+n > b.max {
			return &LimitError{"bemalloc.Budget", used, b.max, n, nil}
		}
		if b.used.CompareAndSwap(used, used+n) {
			return nil
		}
	}
}

func (b *Budget) give(n int64) {
	if b != nil {
		b.used.Add(-n)
	}
}

func (b *Budget) join(p *Pool) {
	if b != nil {
		b.mu.Lock()
		b.pools = append(b.pools, p)
		b.mu.Unlock()
	}
}

func (b *Budget) leave(p *Pool) {
	if b != nil {
		b.mu.Lock()
		b.pools = slices.DeleteFunc(b.pools, func(q *Pool) bool { return q == p })
		b.mu.Unlock()
	}
}

// reclaim has the pools other than p give back what is free, if the budget is bounded
// at all. It reports whether that changed anything.
func (b *Budget) reclaim(p *Pool) (moved bool) {
	if b == nil || b.max == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.pools {
		if q != p {
			moved = q.Trim(0) > 0 || moved
		}
	}
	return moved
}
