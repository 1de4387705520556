package core

import "sync/atomic"

// Budget is a token bucket of attempts beyond the first. Any goroutine may use it.
type Budget struct {
	milli  atomic.Int64 // thousandths of an attempt
	earn   int64
	limit  int64
	denied atomic.Uint64
}

const attemptCost = 1000

// NewBudget makes a full budget.
func NewBudget(cfg *Config) *Budget {
	b := &Budget{earn: int64(max(cfg.RetryRatio, 0) * attemptCost), limit: int64(max(cfg.RetryBurst, 0)) * attemptCost}
	b.milli.Store(b.limit)
	return b
}

// Called adds what one call is worth.
func (b *Budget) Called() {
	for {
		v := b.milli.Load()
		if v >= b.limit || b.milli.CompareAndSwap(v, min(v+b.earn, b.limit)) {
			return
		}
	}
}

// Retry takes one attempt, if there is one.
func (b *Budget) Retry() bool { return b.take(0) }

// Hedge takes one attempt if that leaves half of the burst for retries.
func (b *Budget) Hedge() bool { return b.take(b.limit / 2) }

func (b *Budget) take(leave int64) bool {
	for {
		v := b.milli.Load()
		if v < leave+attemptCost {
			b.denied.Add(1)
			return false
		}
		if b.milli.CompareAndSwap(v, v-attemptCost) {
			return true
		}
	}
}

// Denied is how many retries and hedges the budget did not allow.
func (b *Budget) Denied() uint64 { return b.denied.Load() }
