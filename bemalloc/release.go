package bemalloc

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/byteexpress/byteexpress/mr"
)

const (
	retainMin     = 64 << 20
	peakMemory    = time.Minute      // how long a peak counts for RetainBytes
	releaseDelay  = 5 * time.Second  // a block free for this long may be closed
	releaseMax    = 80 * time.Second // the delay's bound under churn
	churnWindow   = 10 * time.Second // reopened this soon after a close is churn
	releasePerTic = 8                // blocks closed at most by one tick
)

// release is the state of giving blocks back. Guarded by the run lock.
type release struct {
	delay     time.Duration
	lastClose time.Time // of the last close not yet answered by an open
	peak      int64     // most bytes in use lately
	peakAt    time.Time
}

// opened notes that blocks were opened: soon after a close that is churn, and
// blocks are kept longer from now on.
func (r *release) opened(now time.Time) {
	switch {
	case r.lastClose.IsZero():
	case now.Sub(r.lastClose) < churnWindow:
		r.delay = min(2*r.delay, releaseMax)
	default:
		r.delay = releaseDelay
	}
	r.lastClose = time.Time{}
}

// sample notes the bytes in use for the peak.
func (r *release) sample(now time.Time, inUse int64) {
	if inUse >= r.peak || now.Sub(r.peakAt) > peakMemory {
		r.peak, r.peakAt = inUse, now
	}
}

// retain gives the free bytes to keep.
func (p *Pool) retain() int64 {
	switch n := p.cfg.RetainBytes; {
	case n > 0:
		return n
	case n < 0:
		return 0
	default:
		return max(retainMin, p.release.peak/4)
	}
}

// freeBytes gives the bytes that could be given back. Called under the run lock.
func (r *runs) freeBytes() int64 { return int64(r.freeBlocks)<<blockShift + r.hugeFreed }

// held is a registration with one device.
type held struct {
	device int
	region mr.Region
}

// parked is memory whose registration could not be ended: it stays mapped and is
// never used again, since a NIC may still reach it.
type parked struct {
	first, n uint32
	regions  []held
}

// freeRegion is one registration that nothing uses: a block or a huge run.
type freeRegion struct {
	first, n  uint32
	idleSince int64
}

// closeFree closes free blocks and huge runs that were free since before the
// given clock value, oldest and highest first, while more than keep bytes are
// free, at most limit of them. It returns the bytes given back.
func (p *Pool) closeFree(keep int64, before int64, limit int) (bytes int64, err error) {
	victims := p.claimFree(keep, before, limit)
	for _, v := range victims {
		if e := p.closeRegion(v.first, v.n); e != nil {
			err = errors.Join(err, e)
		} else {
			bytes += int64(v.n) << blockShift
		}
	}
	if bytes > 0 {
		now := p.cfg.now()
		p.runs.mu.Lock()
		p.release.lastClose = now
		p.runs.growth.backOff = 0 // what was refused may go now
		p.runs.mu.Unlock()
		p.room.notify()
	}
	return bytes, err
}

// claimFree takes what closeFree closes out of use.
func (p *Pool) claimFree(keep, before int64, limit int) (victims []freeRegion) {
	r := &p.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freeBytes() <= keep {
		return nil
	}
	for b := range r.hi {
		if bl := p.table.block(b); bl.state == blockOpen && bl.free == ^uint64(0) && bl.idleSince <= before {
			victims = append(victims, freeRegion{b, 1, bl.idleSince})
		}
	}
	for _, f := range r.hugeFree {
		if bl := p.table.block(f); bl.idleSince <= before {
			victims = append(victims, freeRegion{f, bl.length, bl.idleSince})
		}
	}
	slices.SortFunc(victims, func(a, b freeRegion) int {
		if a.idleSince != b.idleSince {
			return int(min(max(a.idleSince-b.idleSince, -1), 1))
		}
		return int(b.first) - int(a.first)
	})
	n := 0
	for ; n < len(victims) && n < limit && r.freeBytes() > keep; n++ {
		v := victims[n]
		if bl := p.table.block(v.first); bl.state == blockOpen {
			bl.free = 0
			r.fit.set(v.first, 0)
			r.freeBlocks--
			r.freeUnits -= unitsPerBlock
		} else {
			i := slices.Index(r.hugeFree, v.first)
			r.hugeFree = slices.Delete(r.hugeFree, i, i+1)
			r.hugeFreed -= int64(v.n) << blockShift
		}
		for i := range v.n {
			p.table.block(v.first + i).state = blockOpening
		}
		r.registered -= int64(v.n) << blockShift
	}
	return victims[:n]
}

// closeRegion ends the registrations of claimed blocks and gives their memory
// back, or parks them.
func (p *Pool) closeRegion(first, n uint32) error {
	regions := make([]held, len(p.devices))
	for i := range regions {
		regions[i] = held{i, p.table.region(i, first)}
	}
	err := p.giveBack(first, n, regions)
	p.runs.mu.Lock()
	if p.table.block(first).state == blockOpening {
		p.unclaim(first, n)
	}
	p.runs.mu.Unlock()
	return err
}

// giveBack deregisters claimed blocks and returns their pages. What cannot be
// deregistered is parked.
func (p *Pool) giveBack(first, n uint32, regions []held) error {
	left, err := p.deregister(regions)
	if err == nil {
		if err = decommit(p.mem.blocks(first, n), p.cfg.HugePages); err == nil {
			return nil
		}
		err = fmt.Errorf("bemalloc: give back %d blocks: %w", n, err)
	}
	p.runs.mu.Lock()
	for i := range n {
		p.table.block(first + i).state = blockParked
	}
	p.parked = append(p.parked, parked{first, n, left})
	p.runs.parked += int64(n) << blockShift
	p.runs.mu.Unlock()
	return err
}

// deregister ends registrations. It returns those that are left, and why.
func (p *Pool) deregister(regions []held) (left []held, err error) {
	for _, h := range regions {
		start := p.cfg.now()
		e := p.devices[h.device].Deregister(h.region)
		p.counters.deregister.add(p.cfg.now().Sub(start))
		if e != nil {
			left = append(left, h)
			err = errors.Join(err, fmt.Errorf("bemalloc: deregister %v: %w", h.region, e))
		}
	}
	return left, err
}

// unpark tries once more to end the registrations of parked blocks.
func (p *Pool) unpark() (err error) {
	p.runs.mu.Lock()
	list := p.parked
	p.parked = nil
	for _, k := range list {
		p.runs.parked -= int64(k.n) << blockShift
		for i := range k.n {
			p.table.block(k.first + i).state = blockOpening
		}
	}
	p.runs.mu.Unlock()
	for _, k := range list {
		e := p.giveBack(k.first, k.n, k.regions)
		p.runs.mu.Lock()
		if e == nil {
			p.unclaim(k.first, k.n)
		}
		p.runs.mu.Unlock()
		err = errors.Join(err, e)
	}
	return err
}

// reclaim makes room after a refused growth: it empties the caches and closes
// what is free, and so do those who share the budget. It reports whether that
// changed anything.
func (p *Pool) reclaim() bool {
	moved := p.flushCaches(flushOnce)
	bytes, _ := p.closeFree(0, maxClock, maxBlocks)
	others := p.cfg.Budget.reclaim(p)
	return moved || bytes > 0 || others
}

// Trim empties the caches and gives free blocks back until at most keep bytes
// are free. It returns the bytes given back. Heaps follow with their next Free.
// Any goroutine may call it.
func (p *Pool) Trim(keep int64) int64 {
	p.flushCaches(flushOnce)
	bytes, _ := p.closeFree(max(keep, 0), maxClock, maxBlocks)
	return bytes
}

const (
	maxClock  = int64(math.MaxInt64)
	maxBlocks = int(maxReserve >> blockShift)
)

// flushMode says what becomes of the caches after a flush.
type flushMode int

const (
	flushOnce  flushMode = iota // they fill again
	flushPause                  // they stay empty until local.resume
	flushLast                   // they stay empty, and heaps' owners have stopped
)

// flushCaches moves every cached object to the central lists and lets go of
// empty spans. Heaps are asked to do it themselves, but for the last time. It
// reports whether anything moved.
func (p *Pool) flushCaches(mode flushMode) (moved bool) {
	empty := true
	p.local.each(func(c *cache) { empty = empty && c.empty() })
	if !empty || mode != flushOnce {
		p.local.flush(mode, func(c *cache) { moved = p.flush(c) || moved })
	}
	p.heapsMu.Lock()
	for c := range p.heaps {
		if mode != flushOnce || !c.empty() {
			c.wantFlush()
		}
		if mode == flushLast {
			moved = p.flush(c) || moved
		}
	}
	p.heapsMu.Unlock()
	p.eachCentral(func(ce *central) { moved = p.drain(ce) || moved })
	return moved
}

// drain lets go of a list's empty spans.
func (p *Pool) drain(ce *central) (moved bool) {
	var buf [16]uint32
	for {
		units := ce.drain(&p.table, buf[:])
		p.freeSpans(ce.class, units)
		moved = moved || len(units) > 0
		if len(units) < len(buf) {
			return moved
		}
	}
}

// flush moves what a cache holds to the central lists and the free runs. The caller owns the cache.
func (p *Pool) flush(c *cache) (moved bool) {
	for i := range uint32(numClasses) {
		if n := c.mag[i].n; n > 0 {
			p.putBack(&p.central[i], c.obj[i][:n])
			store(&c.mag[i].n, 0)
			moved = true
		}
	}
	var runs unitList
	n := c.runs.evict(&runs, 0)
	p.returnRuns(c, runs[:n])
	return moved || n > 0
}
