package bemalloc

const (
	cachedRun   = 16 // longest run that a cache holds, in units: 1 MiB
	cachedUnits = 32 // most units of runs in a cache: 2 MiB
	runSlots    = 16 // most runs of one length
)

// runCache is the part of a cache that holds runs, a stack for each length. What
// holds for the cache's magazines holds for it: one owner, who loads and stores
// and nothing else. A run in a cache is marked as freed, with its length.
//
// It is there to spare the run allocator's lock. A locked instruction waits for
// all earlier stores, which after a large buffer was written are many and slow.
type runCache struct {
	held  uint32 // units in all stacks; others read it for Stats
	limit uint32 // most units; 0 while a flush is wanted: others set it
	n     [cachedRun]uint8
	unit  [cachedRun][runSlots]uint32 // first units of runs of i+1 units
}

// pop takes a run of k units.
func (c *runCache) pop(k uint32) (u uint32, ok bool) {
	i := k - 1
	if i >= cachedRun || c.n[i] == 0 {
		return 0, false
	}
	c.n[i]--
	store(&c.held, c.held-k)
	return c.unit[i][c.n[i]%runSlots], true
}

// push puts the run of k units at unit u, unless the cache is full.
func (c *runCache) push(k, u uint32) bool {
	i := (k - 1) % cachedRun
	n := c.n[i]
	if n >= runSlots || c.held+k > load(&c.limit) {
		return false
	}
	c.unit[i][n] = u
	c.n[i] = n + 1
	store(&c.held, c.held+k)
	return true
}

// spill is push after moving the older half of each stack to buf. It returns how
// many runs buf holds; u is among them when the cache takes none.
func (c *runCache) spill(k, u uint32, buf *[cachedUnits + 1]uint32) int {
	n := c.evict(buf[:], 2)
	if !c.push(k, u) {
		buf[n] = u
		n++
	}
	return n
}

// evict moves the oldest 1/part of each stack to buf and returns how many runs
// that were.
func (c *runCache) evict(buf []uint32, part uint8) (total int) {
	for i := range c.n {
		k := (c.n[i] + part - 1) / part
		if k == 0 {
			continue
		}
		total += copy(buf[total:], c.unit[i][:k])
		copy(c.unit[i][:], c.unit[i][k:])
		c.n[i] -= k
		store(&c.held, c.held-uint32(k)*uint32(i+1))
	}
	return total
}

// popRun takes a run of k units from the caller's cache.
func (p *Pool) popRun(h *Heap, k uint32) (u uint32, ok bool) {
	if h != nil {
		u, ok = h.c.runs.pop(k)
	} else {
		c, s := p.local.hold()
		u, ok = c.runs.pop(k)
		p.local.letGo(s)
	}
	if ok {
		p.table.words[u] = headWord(kindHead, k)
	}
	return u, ok
}

// pushRun puts the run of k units at unit u, which its owner freed, in the caller's
// cache, making room there if needed.
func (p *Pool) pushRun(h *Heap, k, u uint32) {
	p.table.words[u] = headWord(kindFreed, k)
	var buf [cachedUnits + 1]uint32
	n := 0
	if h != nil {
		p.heedFlush(h)
		if !h.c.runs.push(k, u) {
			n = h.c.runs.spill(k, u, &buf)
		}
	} else {
		c, s := p.local.hold()
		if !c.runs.push(k, u) {
			n = c.runs.spill(k, u, &buf)
		}
		p.local.letGo(s)
	}
	p.returnRuns(buf[:n])
}

// returnRuns gives runs from a cache back.
func (p *Pool) returnRuns(units []uint32) {
	if len(units) == 0 {
		return
	}
	p.runs.mu.Lock()
	for _, u := range units {
		p.returnRun(u, p.table.words[u].runArg())
	}
	p.runs.mu.Unlock()
	p.room.notify()
}
