package bemalloc

import (
	"math/bits"
	"sync/atomic"
)

const (
	cachedRun = 16 // longest run that a cache serves, in units: 1 MiB
	runSlots  = 64 // blocks of which a cache holds units

	// A cache may have its share of the free units, and has at least 512 KiB and at most
	// 16 MiB. A lone one may have shareAlone of shareParts parts of what is free. Several
	// have less together, the more they are: units in different caches do not join.
	shareMin   = 8
	shareMax   = 256
	shareAlone = 21
	shareParts = 28

	// A cache that may have as many units as this gets all that a block has.
	wholeBlock = 48

	recentRuns = 8  // runs of each length that a cache remembers
	lengths    = 32 // more than cachedRun, a power of two

	// Buffers of runs that start within lineUnits of a block start at the same line.
	// A page is then written at few different lines, and lineStep, odd, spreads these
	// over the sets of the processor's caches.
	lineUnits = 16
	lineStep  = 13
)

// runCache is the part of a cache that holds free units, from which it cuts runs
// and in which they join again. It has a slot for each block number modulo
// runSlots. What holds for the cache's magazines holds for it: one owner, who loads
// and stores and nothing else.
//
// It is there to spare the run allocator's lock. A locked instruction waits for
// all earlier stores, which after a large buffer was written are many and slow. They
// are also why pop and push store little: the processor keeps only so many stores that wait.
type runCache struct {
	held  uint32 // free units in all slots; others read it for Stats
	limit uint32 // most units; 0 while a flush is wanted: others set it
	known uint32 // held, as the run allocator knows it; guarded by its lock
	used  uint64 // bit i: slot i may have units
	slot  [runSlots]runSlot

	// The runs freed last, by length. Their units may have been used for other runs
	// since, which slot tells; those that were not are taken first, without a search.
	recent [lengths]recent
}

// recent is the runs of one length that were freed last.
type recent struct {
	run [recentRuns]uint32
	top uint32 // where the next one goes
	_   [28]byte
}

// runSlot is the units that a cache holds of a block.
type runSlot struct {
	free  uint64 // bit u: unit u is free and ours
	block uint32
}

// blockUnits are units of one block.
type blockUnits struct {
	block uint32
	units uint64
}

// unitList has room for the units of every slot of a cache, and for a run on top.
type unitList [runSlots + 1]blockUnits

// pop cuts a run of k units, k from 1 to cachedRun: the one of that length that was freed
// last, or else the lowest of that length, or else of a longer one.
func (c *runCache) pop(k uint32) (u uint32, ok bool) {
	if c.held < k {
		return 0, false
	}
	s, u, run := c.again(k)
	if s.free&run != run || s.block != u/unitsPerBlock {
		if s, u, run = c.search(k); s == nil {
			return 0, false
		}
	}
	s.free ^= run
	store(&c.held, c.held-k)
	return u, true
}

// again gives the run of k units that was freed last, and its slot. It may be free no more.
func (c *runCache) again(k uint32) (s *runSlot, u uint32, run uint64) {
	r := &c.recent[k%lengths]
	r.top--
	u = r.run[r.top%recentRuns]
	return &c.slot[u/unitsPerBlock%runSlots], u, lowOnes[k%lengths] << (u % unitsPerBlock)
}

// search finds a run of k units.
func (c *runCache) search(k uint32) (s *runSlot, u uint32, run uint64) {
	var at uint64
	for used := c.used; used != 0; used &= used - 1 {
		i := bits.TrailingZeros64(used) % runSlots
		t := &c.slot[i]
		if t.free == 0 {
			c.used &^= 1 << i
			continue
		}
		all, exact := shortRuns(t.free, k)
		if exact != 0 {
			s, at = t, exact
			break
		}
		if at == 0 && all != 0 {
			s, at = t, all
		}
	}
	if s == nil {
		return nil, 0, 0
	}
	first := uint32(bits.TrailingZeros64(at))
	return s, s.block*unitsPerBlock + first, runMask(first, k)
}

// push puts the run at unit u, of k units, and marks it as freed. It reports false, and
// does nothing, if the cache is full or the slot holds units of another block.
func (c *runCache) push(t *table, u, k uint32) bool {
	s := c.roomFor(u, k)
	if s == nil {
		return false
	}
	t.setWord(u, kindFreed)
	c.put(s, u, k)
	return true
}

// roomFor gives the slot for the run of k units at u, if the cache takes it.
func (c *runCache) roomFor(u, k uint32) *runSlot {
	s := &c.slot[u/unitsPerBlock%runSlots]
	if s.free != 0 && s.block != u/unitsPerBlock || c.held+k > load(&c.limit) {
		return nil
	}
	return s
}

// put puts the run of k units at u in slot s.
func (c *runCache) put(s *runSlot, u, k uint32) {
	if s.free == 0 {
		s.block = u / unitsPerBlock
		c.used |= 1 << (s.block % runSlots)
	}
	s.free |= lowOnes[k%lengths] << (u % unitsPerBlock)
	store(&c.held, c.held+k)
	r := &c.recent[k%lengths]
	r.run[r.top%recentRuns] = u
	r.top++
}

// stock puts units that the run allocator gave. It reports false if the slot is
// taken.
func (c *runCache) stock(b blockUnits) bool {
	s := &c.slot[b.block%runSlots]
	if load(&c.limit) == 0 || s.free != 0 && s.block != b.block {
		return false
	}
	s.free |= b.units
	s.block = b.block
	c.used |= 1 << (b.block % runSlots)
	store(&c.held, c.held+uint32(bits.OnesCount64(b.units)))
	return true
}

// evict moves the units of the highest slots to buf until at most keep units are
// left. It returns how many entries buf holds. Of a run that was freed twice at the same
// time, held counts more than there is.
func (c *runCache) evict(buf *unitList, keep uint32) (n int) {
	for c.held > keep && c.used != 0 {
		n += c.evictSlot(63-uint32(bits.LeadingZeros64(c.used)), buf[n:])
	}
	if c.used == 0 {
		store(&c.held, 0)
	}
	return n
}

// evictSlot moves the units of one slot to buf.
func (c *runCache) evictSlot(i uint32, buf []blockUnits) int {
	s := &c.slot[i%runSlots]
	c.used &^= 1 << (i % runSlots)
	if s.free == 0 {
		return 0
	}
	buf[0] = blockUnits{s.block, s.free}
	store(&c.held, c.held-uint32(bits.OnesCount64(s.free)))
	s.free = 0
	return 1
}

// spill is push after making room. It returns how many entries buf holds; the run is
// among them when the cache takes none.
func (c *runCache) spill(t *table, u, k uint32, buf *unitList) (n int) {
	if limit := load(&c.limit); c.held+k > limit {
		n = c.evict(buf, limit-min(k, limit))
	} else {
		n = c.evictSlot(u/unitsPerBlock%runSlots, buf[:])
	}
	if !c.push(t, u, k) {
		t.setWord(u, kindFreed)
		buf[n] = blockUnits{u / unitsPerBlock, runMask(u%unitsPerBlock, k)}
		n++
	}
	return n
}

// place marks the run at unit u, of k units and just taken, as the buffer of n bytes and returns
// the buffer's offset.
//
// Buffers do not all start where their units do: their first lines, and with equal
// steps all others that a program touches in each page, would share a few sets of
// the processor's caches, and most would miss. So buffers of different parts of a
// block start at different lines, if the last unit has room for that.
func (p *Pool) place(u, k uint32, n int) uint64 {
	line := runLine(u)
	if k<<unitShift-uint32(n) < line<<objShift {
		line = 0
	}
	p.table.setWord(u, unitWord(kindHead|line<<headLineShift|k<<headUnitsShift))
	return uint64(u)<<unitShift + uint64(line)<<objShift
}

// runLine gives the line at which the buffer of a run at unit u starts.
func runLine(u uint32) uint32 { return u / lineUnits * lineStep % headLines }

// pushRun puts the run of k units at unit u in the caller's cache after making room
// there.
func (p *Pool) pushRun(h *Heap, u, k uint32) {
	if h != nil {
		p.heedFlush(h)
	}
	var buf unitList
	c, s := p.ownCache(h)
	n := c.runs.spill(&p.table, u, k, &buf)
	p.local.letGo(s)
	p.returnRuns(c, buf[:n])
}

// refillRuns takes a run of k units from the run allocator, and more units of the
// same block for the caller's cache.
func (p *Pool) refillRuns(h *Heap, k uint32) (uint32, error) {
	c, s := p.ownCache(h)
	p.local.letGo(s) // to get the cache was all
	u, more, ok := p.takeRuns(c, k)
	if !ok {
		return p.allocRun(k, 1, kindHead)
	}
	if more.units != 0 {
		c, s = p.ownCache(h)
		ok = c.runs.stock(more)
		p.local.letGo(s)
		if !ok {
			p.returnRuns(nil, []blockUnits{more})
		}
	}
	return u, nil
}

// share sets how much a cache may hold: its share of all that is free. Called under the
// run lock, now and then, with the units that c is about to get; c may be nil.
func (r *runs) share(c *cache, got uint32) {
	if c == nil || c == &noCache {
		return
	}
	if load(&c.runs.limit) == 0 { // it will take none
		got = 0
	}
	held := load(&c.runs.held) + got
	if c.runs.known == 0 && held != 0 {
		r.sharers++
	} else if c.runs.known != 0 && held == 0 {
		r.sharers--
	}
	r.shared += int64(held) - int64(c.runs.known)
	c.runs.known = held
	doublings := int64(bits.Len64(uint64(r.sharers|1))) - 1
	part := (r.freeUnits + r.shared) * max(shareAlone-3*doublings, 3) / (shareParts * max(r.sharers, 1))
	limit := min(max(part, shareMin), shareMax)
	if l := load(&c.runs.limit); l != 0 {
		atomic.CompareAndSwapUint32(&c.runs.limit, l, uint32(limit))
	}
}

// takeRuns takes a run of k units for the cache c, and all else that is free of its block,
// so that this stays together. A cache whose share is small gets no more than that: the
// highest units, so that those beside the units in use join those when they are freed.
func (p *Pool) takeRuns(c *cache, k uint32) (u uint32, more blockUnits, ok bool) {
	r := &p.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	if u, ok = p.takeRun(k, 1); !ok {
		return 0, more, false
	}
	p.table.mark(u, k, kindHead)
	r.large += int64(k) << unitShift
	r.share(c, 0)
	bl := p.table.block(u / unitsPerBlock)
	more = blockUnits{u / unitsPerBlock, bl.free}
	want := load(&c.runs.limit)
	if want < wholeBlock {
		want -= min(load(&c.runs.held), want)
	}
	for uint32(bits.OnesCount64(more.units)) > want {
		more.units &= more.units - 1
	}
	got := int64(bits.OnesCount64(more.units))
	bl.free &^= more.units
	r.fit.set(more.block, longestRun(bl.free))
	r.freeUnits -= got
	r.large += got << unitShift
	r.share(c, uint32(got))
	return u, more, true
}

// returnRuns gives units from a cache back, and notes what c has left, if it is not nil.
func (p *Pool) returnRuns(c *cache, list []blockUnits) {
	if len(list) == 0 && c == nil {
		return
	}
	p.runs.mu.Lock()
	for _, e := range list {
		p.runs.large -= int64(bits.OnesCount64(e.units)) << unitShift
		p.freeUnits(e.block, e.units)
	}
	p.runs.share(c, 0)
	p.runs.mu.Unlock()
	p.room.notify()
}
