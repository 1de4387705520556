package bemalloc

import (
	"math/bits"
	"sync"
)

// runs hands out units. Its lock guards the blocks' records and everything here.
type runs struct {
	mu  sync.Mutex
	fit fitTree
	hi  uint32 // blocks below it have records

	registered int64    // bytes in open blocks and huge runs
	committed  int64    // registered, being opened, being closed, or parked
	peak       int64    // most bytes ever registered
	freeUnits  int64    // in open blocks
	freeBlocks int      // open blocks that are wholly free
	large      int64    // bytes of runs in use that hold no span, huge ones included
	hugeFree   []uint32 // first blocks of cached huge runs
	hugeFreed  int64    // bytes of those
	shared     int64    // free units in caches, as far as those said so lately
	sharers    int64    // caches that hold any
	huge       int      // huge runs in use
	parked     int64    // bytes of parked blocks

	flight *flight // the growth under way
	growth growth
}

// tryRun takes k units at a multiple of align units, marks them as of a kind and
// returns the first; or it returns the growth that the caller must wait for, with
// makeRoom.
func (p *Pool) tryRun(k, align, kind uint32) (u uint32, g growing) {
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	u, ok := p.takeRun(k, align)
	if !ok {
		return 0, p.board()
	}
	p.table.mark(u, k, kind)
	if kind == kindHead || kind == kindOHead {
		p.runs.large += int64(k) << unitShift
	}
	return u, growing{}
}

// allocRun is tryRun that makes room as needed.
func (p *Pool) allocRun(k, align, kind uint32) (uint32, error) {
	for reclaimed := false; ; {
		u, g := p.tryRun(k, align, kind)
		if g.flight == nil {
			return u, nil
		}
		if err := p.makeRoom(g, &reclaimed); err != nil {
			return 0, err
		}
	}
}

// makeRoom leads a growth or waits for it. When it fails, what is free elsewhere
// is collected, once. A nil error says that another try may succeed.
func (p *Pool) makeRoom(g growing, reclaimed *bool) error {
	if g.lead {
		p.grow(g.flight)
	}
	<-g.flight.done
	if g.flight.err == nil {
		return nil
	}
	if *reclaimed || !p.reclaim() {
		return g.flight.err
	}
	*reclaimed = true
	return nil
}

// takeRun finds and takes a run. Called under the run lock.
func (p *Pool) takeRun(k, align uint32) (uint32, bool) {
	r := &p.runs
	if r.fit.longest() < k {
		return 0, false
	}
	b := r.fit.first(k)
	bl := p.table.block(b)
	var at uint32
	if align == 1 && k <= cachedRun {
		at = shortRun(bl.free, k)
	} else {
		at = firstRun(bl.free, k, align)
	}
	for at == unitsPerBlock { // room, but not at that alignment
		var ok bool
		if b, ok = r.fit.next(b+1, k); !ok {
			return 0, false
		}
		bl = p.table.block(b)
		at = firstRun(bl.free, k, align)
	}
	if bl.free == ^uint64(0) {
		r.freeBlocks--
		bl.idleSince = 0
	}
	bl.free &^= runMask(at, k)
	r.freeUnits -= int64(k)
	r.fit.set(b, longestRun(bl.free))
	return b*unitsPerBlock + at, true
}

// freeRun takes the k units of a run back. Called under the run lock.
func (p *Pool) freeRun(u, k uint32) {
	p.freeUnits(u/unitsPerBlock, runMask(u%unitsPerBlock, k))
}

// freeUnits takes units of block b back. Called under the run lock.
func (p *Pool) freeUnits(b uint32, units uint64) {
	r := &p.runs
	bl := p.table.block(b)
	bl.free |= units
	r.freeUnits += int64(bits.OnesCount64(units))
	r.fit.set(b, longestRun(bl.free))
	if bl.free == ^uint64(0) {
		r.freeBlocks++
		p.noteFree()
	}
}

// freeSpans takes the runs of empty spans of a class back.
func (p *Pool) freeSpans(class uint32, units []uint32) {
	if len(units) == 0 {
		return
	}
	k := classes[class].units
	p.runs.mu.Lock()
	for _, u := range units {
		p.table.mark(u, k, kindFreed)
		p.freeRun(u, k)
	}
	p.runs.mu.Unlock()
}

// freeLarge takes back the run or huge run that starts at unit u.
func (p *Pool) freeLarge(u uint32) error {
	r := &p.runs
	r.mu.Lock()
	w := p.table.word(u)
	if !w.isHead() { // freed by another goroutine meanwhile
		r.mu.Unlock()
		return ErrDoubleFree
	}
	k := w.length()
	p.table.setWord(u, kindFreed)
	owner := uint32(0)
	if w.kind() == kindOHead {
		s := p.table.span(u)
		owner, s.owner = s.owner, 0
	}
	if k <= unitsPerBlock {
		p.returnRun(u, k)
	} else {
		p.returnHuge(u/unitsPerBlock, k/unitsPerBlock)
	}
	r.mu.Unlock()
	if owner != 0 {
		p.credit(p.quota(owner), int64(k)<<unitShift)
	}
	p.room.notify()
	return nil
}

// returnRun takes back the k units of a large buffer. Called under the run lock.
func (p *Pool) returnRun(u, k uint32) {
	p.runs.large -= int64(k) << unitShift
	p.freeRun(u, k)
}

// returnHuge caches the n blocks of a huge buffer. Called under the run lock.
func (p *Pool) returnHuge(first, n uint32) {
	r := &p.runs
	r.large -= int64(n) << blockShift
	r.hugeFreed += int64(n) << blockShift
	r.hugeFree = append(r.hugeFree, first)
	r.huge--
	p.table.block(first).idleSince = 0
	p.noteFree()
}

// takeHuge takes a cached huge run of n blocks. Called under the run lock.
func (p *Pool) takeHuge(n uint32) (first uint32, ok bool) {
	r := &p.runs
	for i, f := range r.hugeFree {
		if p.table.block(f).length == n {
			r.hugeFree = append(r.hugeFree[:i], r.hugeFree[i+1:]...)
			r.hugeFreed -= int64(n) << blockShift
			return f, true
		}
	}
	return 0, false
}

// allocHuge takes n consecutive blocks under one registration and returns the
// first unit.
func (p *Pool) allocHuge(n, kind uint32) (uint32, error) {
	bytes := int64(n) << blockShift
	if limit := p.cfg.MaxRegionBytes; limit > 0 && bytes > limit || uint64(bytes) > p.mem.size {
		return 0, p.tooLarge(bytes)
	}
	for reclaimed := false; ; {
		p.runs.mu.Lock()
		first, ok := p.takeHuge(n)
		if ok {
			p.useHuge(first, n, kind)
			p.runs.mu.Unlock()
			return first * unitsPerBlock, nil
		}
		p.runs.mu.Unlock()
		first, err := p.openHuge(n, kind)
		if err == nil {
			return first * unitsPerBlock, nil
		}
		if reclaimed || !p.reclaim() {
			return 0, err
		}
		reclaimed = true
	}
}

// useHuge marks a huge run as in use. Called under the run lock.
func (p *Pool) useHuge(first, n, kind uint32) {
	units := n * unitsPerBlock
	p.table.mark(first*unitsPerBlock, units, kind)
	p.runs.large += int64(n) << blockShift
	p.runs.huge++
}
