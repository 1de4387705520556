package bemalloc

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

const (
	cachedRun = 16 // longest run that a cache serves, in units: 1 MiB
	runSlots  = 64 // blocks of which a cache holds units

	// A cache holds its share of the free units, but at least 512 KiB and at most
	// 16 MiB. A lone one has half of what is free; several have a sixth together,
	// which keeps the memory near what their buffers take.
	shareMin     = 8
	shareMax     = 256
	shareAlone   = 2
	shareSeveral = 6

	// Before the pool grows, which takes far longer, a caller asks the other caches
	// for what they hold if that is at least askUnits, and looks for what came of it
	// askTimes.
	askUnits = 16
	askTimes = 8

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
// all earlier stores, which after a large buffer was written are many and slow.
type runCache struct {
	held    uint32               // free units in all slots; others read it for Stats
	limit   uint32               // most units; 0 while a flush is wanted: others set it
	longest [runSlots / 8]uint64 // a byte a slot: its longest run is no longer than that
	free    [runSlots]uint64     // bit u: unit u of the slot's block is free and ours
	block   [runSlots]uint32

	known uint32 // held, as the run allocator knows it; guarded by its lock
}

// blockUnits are units of one block.
type blockUnits struct {
	block uint32
	units uint64
}

// unitList has room for the units of every slot of a cache, and for a run on top.
type unitList [runSlots + 1]blockUnits

// bytes8 has v in each byte.
func bytes8(v uint64) uint64 { return v * 0x0101010101010101 }

// pop cuts a run of k units, k from 1 to cachedRun, from the lowest slot that has one.
func (c *runCache) pop(k uint32) (u uint32, ok bool) {
	if c.held < k {
		return 0, false
	}
	for w := range c.longest {
		// The top bit of a byte survives the subtraction if the byte is at least k.
		fits := (c.longest[w] | bytes8(0x80) - bytes8(uint64(k))) & bytes8(0x80)
		for ; fits != 0; fits &= fits - 1 {
			bit := uint32(bits.TrailingZeros64(fits)) &^ 7
			i := (uint32(w)*8 + bit/8) % runSlots
			at := shortRun(c.free[i], k)
			if at < unitsPerBlock {
				c.free[i] &^= runMask(at, k)
				store(&c.held, c.held-k)
				return c.block[i]*unitsPerBlock + at, true
			}
			c.longest[w] = c.longest[w]&^(0xff<<bit) | uint64(k-1)<<bit
		}
	}
	return 0, false
}

// push puts the run at unit u, of k units, and marks it as freed. It reports false, and
// does nothing, if the cache is full or the slot holds units of another block.
func (c *runCache) push(t *table, u, k uint32) bool {
	block, at := u/unitsPerBlock, u%unitsPerBlock
	i := block % runSlots
	free, held := c.free[i], c.held+k
	if held > load(&c.limit) || free != 0 && c.block[i] != block {
		return false
	}
	t.setWord(u, kindFreed)
	free |= runMask(at, k)
	c.free[i] = free
	c.block[i] = block
	store(&c.held, held)
	w, bit := i/8, i%8*8
	run := uint64(bits.LeadingZeros64(^(free << (unitsPerBlock - at))) + bits.TrailingZeros64(^(free >> at)))
	if run > c.longest[w]>>bit&0xff {
		c.longest[w] = c.longest[w]&^(0xff<<bit) | run<<bit
	}
	return true
}

// stock puts units that the run allocator gave. It reports false if the slot is
// taken.
func (c *runCache) stock(b blockUnits) bool {
	i := b.block % runSlots
	if load(&c.limit) == 0 || c.free[i] != 0 && c.block[i] != b.block {
		return false
	}
	c.free[i] |= b.units
	c.block[i] = b.block
	store(&c.held, c.held+uint32(bits.OnesCount64(b.units)))
	w, bit := i/8, i%8*8
	c.longest[w] = c.longest[w]&^(0xff<<bit) | uint64(longestRun(c.free[i]))<<bit
	return true
}

// room gives how many more units the cache likes to have.
func (c *runCache) room() uint32 {
	half := load(&c.limit) / 2
	return half - min(c.held, half)
}

// evict moves the units of the highest slots to buf until at most keep units are
// left. It returns how many entries buf holds.
func (c *runCache) evict(buf *unitList, keep uint32) (n int) {
	for i := runSlots - 1; i >= 0 && c.held > keep; i-- {
		n += c.evictSlot(uint32(i), buf[n:])
	}
	return n
}

// evictSlot moves the units of one slot to buf.
func (c *runCache) evictSlot(i uint32, buf []blockUnits) int {
	if c.free[i] == 0 {
		return 0
	}
	buf[0] = blockUnits{c.block[i], c.free[i]}
	store(&c.held, c.held-uint32(bits.OnesCount64(c.free[i])))
	c.free[i] = 0
	c.longest[i/8] &^= 0xff << (i % 8 * 8)
	return 1
}

// spill is push after making room. It returns how many entries buf holds; the run is
// among them when the cache takes none.
func (c *runCache) spill(t *table, u, k uint32, buf *unitList) (n int) {
	if limit := load(&c.limit); c.held+k > limit {
		n = c.evict(buf, limit/2)
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

// place marks the run at unit u, just taken, as the buffer of n bytes and returns
// the buffer's offset.
//
// Buffers do not all start where their units do: their first lines, and with equal
// steps all others that a program touches in each page, would share a few sets of
// the processor's caches, and most would miss. So buffers of different parts of a
// block start at different lines, if the last unit has room for that.
func (p *Pool) place(u uint32, n int) uint64 {
	k := units(n)
	line := runLine(u)
	if int(k)<<unitShift-n < int(line)<<objShift {
		line = 0
	}
	p.table.setWord(u, headWord(kindHead, k, line))
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
// same block for the caller's cache. Before the pool grows, that cache gives back what
// it has, which may join to a run that is long enough, and the others are asked to.
func (p *Pool) refillRuns(h *Heap, k uint32) (uint32, error) {
	c, s := p.ownCache(h)
	want := c.runs.room()
	p.local.letGo(s)
	if u, more, ok := p.takeRuns(c, k, want); ok {
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
	var buf unitList
	c, s = p.ownCache(h)
	n := c.runs.evict(&buf, 0)
	p.local.letGo(s)
	p.returnRuns(c, buf[:n])
	for try := 0; ; try++ {
		if u, _, ok := p.takeRuns(c, k, 0); ok {
			return u, nil
		}
		if try == askTimes || p.askForRuns(c) < askUnits {
			break
		}
		runtime.Gosched()
	}
	return p.allocRun(k, 1, kindHead)
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
	part := int64(shareAlone)
	if r.sharers > 1 {
		part = shareSeveral * r.sharers
	}
	limit := min(max((r.freeUnits+r.shared)/part, shareMin), shareMax)
	if l := load(&c.runs.limit); l != 0 {
		atomic.CompareAndSwapUint32(&c.runs.limit, l, uint32(limit))
	}
}

// askForRuns asks the other caches to give back what they hold, but for a little. It
// returns how many units that is.
func (p *Pool) askForRuns(own *cache) (total uint32) {
	ask := func(c *cache) {
		if held := load(&c.runs.held); c != own && held > shareMin {
			total += held - shareMin
			if limit := load(&c.runs.limit); limit > shareMin {
				atomic.CompareAndSwapUint32(&c.runs.limit, limit, shareMin)
			}
		}
	}
	p.local.each(ask)
	p.heapsMu.Lock()
	for c := range p.heaps {
		ask(c)
	}
	p.heapsMu.Unlock()
	return total
}

// takeRuns takes a run of k units and up to want more of its block, at most a quarter
// of all that are free: the highest, so that those beside the units in use join those
// when they are freed.
func (p *Pool) takeRuns(c *cache, k, want uint32) (u uint32, more blockUnits, ok bool) {
	r := &p.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	if u, ok = p.takeRun(k, 1); !ok {
		return 0, more, false
	}
	p.table.mark(u, k, kindHead)
	bl := p.table.block(u / unitsPerBlock)
	want = min(want, uint32(r.freeUnits/4))
	more = blockUnits{u / unitsPerBlock, bl.free}
	for uint32(bits.OnesCount64(more.units)) > want {
		more.units &= more.units - 1
	}
	got := int64(bits.OnesCount64(more.units))
	bl.free &^= more.units
	r.fit.set(more.block, longestRun(bl.free))
	r.freeUnits -= got
	r.large += (int64(k) + got) << unitShift
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
