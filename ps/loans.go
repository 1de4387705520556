package ps

import (
	"sync"
	"sync/atomic"
)

// A response that is sent from the table itself borrows its rows: until it has left,
// they do not change. Each slot counts the responses that borrow it. A push to such a
// row writes to another slot, and retires the old one: it is free when the last
// borrower has returned it. So no more slots are retired than responses borrow, which
// the server bounds.

// retired is added to the count of a slot that no key has any more.
const retired = 1 << 30

// loans keeps the free slots.
type loans struct {
	mu     sync.Mutex
	free   []uint32
	limit  uint32   // of the table
	above  []uint32 // free slots above it, which nobody is to use
	live   int      // loans
	closed func()   // runs when live is 0; nil: not closed
}

func (l *loans) begin() {
	l.mu.Lock()
	l.live++
	l.mu.Unlock()
}

func (l *loans) end() {
	l.mu.Lock()
	l.live--
	var closed func()
	if l.live == 0 {
		closed, l.closed = l.closed, nil
	}
	l.mu.Unlock()
	if closed != nil {
		closed()
	}
}

// close has f run once nothing is lent.
func (l *loans) close(f func()) {
	l.begin()
	l.mu.Lock()
	l.closed = f
	l.mu.Unlock()
	l.end()
}

func (l *loans) takeFree() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free) - 1
	if last < 0 {
		return 0
	}
	n := l.free[last]
	l.free = l.free[:last]
	return n
}

func (l *loans) giveFree(n uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > l.limit {
		l.above = append(l.above, n)
	} else {
		l.free = append(l.free, n)
	}
}

// lent is the count of a slot's borrowers.
func (t *table) lent(n uint32) *atomic.Int32 {
	n--
	return &t.chunks[n>>t.chunkShift].lent[n&(1<<t.chunkShift-1)]
}

// retire gives up a slot that may be lent. Nobody borrows it anew.
func (t *table) retire(n uint32) {
	c := t.lent(n)
	if c.Add(retired) == retired {
		c.Store(0)
		t.loans.giveFree(n)
	}
}

// giveBack ends one loan of a slot.
func (t *table) giveBack(n uint32, c *atomic.Int32) {
	if c.Add(-1) == retired {
		c.Store(0)
		t.loans.giveFree(n)
	}
}

// loan is what one response borrows.
type loan struct {
	table   *table
	rows    []uint32
	counts  []*atomic.Int32
	parts   [][]byte
	release func() // end, bound once
}

var loanPool sync.Pool

func newLoan(t *table) *loan {
	l, ok := loanPool.Get().(*loan)
	if !ok {
		l = new(loan)
		l.release = l.end
	}
	l.table = t
	t.loans.begin()
	return l
}

// add borrows a slot. The table is locked for reading.
func (l *loan) add(n uint32) {
	c := l.table.lent(n)
	c.Add(1)
	l.rows = append(l.rows, n)
	l.counts = append(l.counts, c)
	l.parts = append(l.parts, floatBytes(l.table.row(n)))
}

// end gives everything back.
func (l *loan) end() {
	for i, n := range l.rows {
		l.table.giveBack(n, l.counts[i])
	}
	l.table.loans.end()
	clear(l.parts)
	l.rows, l.counts, l.parts, l.table = l.rows[:0], l.counts[:0], l.parts[:0], nil
	loanPool.Put(l)
}
