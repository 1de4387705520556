package bemalloc

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/mr"
)

// Pool is one key domain of registered memory. Its methods may be called from
// any goroutine.
type Pool struct {
	// Set by New, read by every call.
	mem     memory
	table   table
	local   local
	dbg     *debugger // nil: no checks
	devices []mr.Registrar
	cfg     Config

	central  [numClasses]central
	runs     runs
	release  release  // guarded by runs.mu
	parked   []parked // guarded by runs.mu
	jan      janitor
	counters counters

	heapsMu  sync.Mutex
	heaps    map[*cache]struct{}      // caches of open heaps
	quotas   atomic.Pointer[[]*quota] // by number - 1; replaced under heapsMu, never changed
	room     waitRoom                 // who waits for memory of the pool
	settleMu sync.Mutex               // held to turn the caches on or off for those

	closed  atomic.Bool // no more allocations
	closeMu sync.Mutex
	stopped bool        // the janitor was told to stop; guarded by closeMu
	gone    atomic.Bool // the reservation is unmapped
}

// New makes a pool. It registers nothing until the first allocation, unless
// Config.PreallocBytes asks for it.
func New(cfg Config) (*Pool, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	mem, err := newMemory(cfg.ReserveBytes)
	if err != nil {
		return nil, err
	}
	p := &Pool{mem: mem, cfg: cfg, heaps: map[*cache]struct{}{}}
	if cfg.Registrar != nil {
		p.devices = append([]mr.Registrar{cfg.Registrar}, cfg.Also...)
	}
	p.table = newTable(int64(mem.size), len(p.devices))
	p.dbg = newDebugger(p, p.cfg.Debug)
	p.local.init(cfg.forceShards, p.dbg != nil)
	p.jan.init()
	p.release.delay = releaseDelay
	p.quotas.Store(new([]*quota))
	p.room.init()
	for c := range p.central {
		p.central[c].class = uint32(c)
	}
	cfg.Budget.join(p)
	for n := int64(0); n < cfg.PreallocBytes; n += blockSize {
		if err := p.openBlocks(1); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// Alloc returns n bytes of registered memory: length and capacity n, starting on
// a 64-byte boundary, not zeroed. n = 0 gives a buffer that must be freed too.
// The caller owns it until Free. Errors: ErrLimit, ErrTooLarge, ErrNoMemory,
// *RegisterError, ErrClosed, ErrBadAlign if n is negative, and with Debug.Poison
// *CorruptError.
func (p *Pool) Alloc(n int) ([]byte, error) {
	// Here and in Free local.hold is written out: calls are what this costs.
	if uint(n) <= maxSmall {
		var obj uint32
		var ok bool
		if havePin && p.local.perP {
			obj, ok = p.local.of(procPin()).pop(classFor(uint(n)))
			procUnpin()
		} else {
			s := p.local.shard()
			obj, ok = s.c.pop(classFor(uint(n)))
			s.mu.Unlock()
		}
		if ok {
			return p.mem.object(obj, n), nil
		}
	} else if uint(n) <= cachedRun*unitSize {
		k := uint32(n+unitSize-1) >> unitShift
		var u uint32
		var ok bool
		if havePin && p.local.perP {
			u, ok = p.local.of(procPin()).runs.pop(k)
			procUnpin()
		} else {
			s := p.local.shard()
			u, ok = s.c.runs.pop(k)
			s.mu.Unlock()
		}
		if ok {
			return p.mem.view(p.place(u, k, n), n), nil
		}
	}
	return p.alloc(nil, n, 1)
}

// AllocAligned is Alloc with a start on a multiple of align, a power of two of at
// most 4 MiB. Otherwise: ErrBadAlign.
func (p *Pool) AllocAligned(n, align int) ([]byte, error) {
	if everyAlign(align) {
		return p.Alloc(n)
	}
	return p.alloc(nil, n, align)
}

// everyAlign reports whether every buffer has an alignment, which is a valid one.
func everyAlign(align int) bool { return align > 0 && align <= objAlign && align&(align-1) == 0 }

// Free takes back a buffer that Alloc of this pool or of any of its heaps
// returned; it may have been resliced, as long as it starts at the same byte.
// Free(nil) does nothing. Errors: ErrBadFree, ErrClosed, and ErrDoubleFree, which
// without Config.Debug may be noticed only by a later Free of another buffer:
// that buffer is then free all the same. Two Frees of one buffer that run at the
// same time are a data race like any other.
func (p *Pool) Free(b []byte) error {
	off := p.mem.offset(b)
	w := p.table.at(off)
	if class, ok := w.small(off); ok {
		if havePin && p.local.perP {
			ok = p.local.of(procPin()).push(class, uint32(off>>objShift))
			procUnpin()
		} else {
			s := p.local.shard()
			ok = s.c.push(class, uint32(off>>objShift))
			s.mu.Unlock()
		}
		if ok {
			return nil
		}
	} else if k, ok := w.run(off); ok {
		if havePin && p.local.perP {
			ok = p.local.of(procPin()).runs.push(&p.table, uint32(off>>unitShift), k)
			procUnpin()
		} else {
			s := p.local.shard()
			ok = s.c.runs.push(&p.table, uint32(off>>unitShift), k)
			s.mu.Unlock()
		}
		if ok {
			return nil
		}
	}
	return p.free(nil, b)
}

// MR gives the memory region, with the first device, that b lies in. b is any
// part of one allocation. Otherwise: ErrNotOwned.
func (p *Pool) MR(b []byte) (mr.Region, error) {
	off := p.mem.offset(b)
	w := p.table.at(off)
	switch c := w.kind() - kindClass; { // within written out for the common cases
	case c < numClasses:
		if classes[c].contains(w.within(off), len(b)) {
			return p.table.block(uint32(off >> blockShift)).region, nil
		}
	case c == kindHead-kindClass:
		if at := off % unitSize; at >= w.start() && at+uint64(len(b)) <= uint64(w.length())<<unitShift {
			return p.table.block(uint32(off >> blockShift)).region, nil
		}
	}
	if !p.within(off, len(b)) {
		return mr.Region{}, ErrNotOwned
	}
	return p.table.block(uint32(off >> blockShift)).region, nil
}

// LKey is the local key of MR, at less cost: what a request of this host's own needs.
func (p *Pool) LKey(b []byte) (mr.LKey, error) {
	off := p.mem.offset(b)
	w := p.table.at(off)
	if c := w.kind() - kindClass; c < numClasses && classes[c].contains(w.within(off), len(b)) {
		return p.table.block(uint32(off >> blockShift)).region.LKey, nil
	}
	r, err := p.MR(b)
	return r.LKey, err
}

// MROn is MR for one of several devices: 0 is Config.Registrar, i is
// Config.Also[i-1].
func (p *Pool) MROn(device int, b []byte) (mr.Region, error) {
	off := p.mem.offset(b)
	if device < 0 || device >= max(len(p.devices), 1) || !p.within(off, len(b)) {
		return mr.Region{}, ErrNotOwned
	}
	return p.table.region(device, uint32(off>>blockShift)), nil
}

// Covers reports whether b starts in the pool's range of addresses, in use or not: of
// several pools, it is the one that MR and Free of b belong to. That costs one
// comparison.
func (p *Pool) Covers(b []byte) bool { return p.mem.offset(b) < p.mem.size }

// Owns reports whether b lies within one live allocation of this pool. It is
// exact for large buffers; an object that a cache holds counts as live.
func (p *Pool) Owns(b []byte) bool { return p.within(p.mem.offset(b), len(b)) }

// within reports whether the n bytes at off lie in one allocation.
func (p *Pool) within(off uint64, n int) bool {
	if off >= p.mem.size {
		return false
	}
	w := p.table.at(off)
	k := w.kind()
	if c := k - kindClass; c < numClasses {
		return classes[c].contains(w.within(off), n)
	}
	if k == kindOwned {
		s := p.table.span(uint32(off>>unitShift) - w.back())
		return classes[s.class%numClasses].contains(w.within(off), n)
	}
	first, w := p.table.head(uint32(off >> unitShift))
	from := uint64(first)<<unitShift + w.start()
	return w.isHead() && off >= from && off+uint64(n) <= uint64(first+w.length())<<unitShift
}

// alloc is every allocation that found no object in its cache. h is nil for
// handle-less calls.
func (p *Pool) alloc(h *Heap, n, align int) ([]byte, error) {
	if n < 0 || align <= 0 || align > blockSize || align&(align-1) != 0 {
		return nil, ErrBadAlign
	}
	if p.closed.Load() {
		return nil, ErrClosed
	}
	if p.dbg != nil {
		return p.dbg.alloc(h, n, align)
	}
	off, err := p.allocateOwn(h, n, align)
	if err != nil {
		return nil, err
	}
	return p.mem.view(off, n), nil
}

// allocateOwn is allocate that, before it fails, gives back what the caller's heap
// caches.
func (p *Pool) allocateOwn(h *Heap, n, align int) (uint64, error) {
	off, err := p.allocate(h, n, align)
	if err != nil && h != nil && p.flush(h.c) {
		off, err = p.allocate(h, n, align)
	}
	return off, err
}

// allocate finds n aligned bytes and returns their offset.
func (p *Pool) allocate(h *Heap, n, align int) (uint64, error) {
	if h != nil && h.quota != nil {
		return p.allocOwned(h.quota, n, align)
	}
	if n <= maxSmall && align <= maxSmall {
		class := classAligned(uint(n), uint(align))
		obj, ok := p.popAligned(h, class, align)
		var err error
		if !ok {
			obj, err = p.refill(h, class)
		}
		return uint64(obj) << objShift, err
	}
	if n <= cachedRun*unitSize && align <= objAlign && p.dbg == nil {
		u, err := p.refillRuns(h, units(n))
		if err != nil {
			return 0, err
		}
		return p.place(u, units(n), n), nil
	}
	return p.allocLarge(n, align, kindHead)
}

// popAligned takes an object of a class from the caller's cache, where Alloc did
// not look already: for an alignment.
func (p *Pool) popAligned(h *Heap, class uint32, align int) (obj uint32, ok bool) {
	if align > 1 {
		c, s := p.ownCache(h)
		obj, ok = c.pop(class)
		p.local.letGo(s)
	}
	return obj, ok
}

// allocLarge finds n bytes that are no object: a run or a huge run, whose first
// word is of the given kind.
func (p *Pool) allocLarge(n, align int, kind uint32) (uint64, error) {
	switch {
	case n <= blockSize:
		u, err := p.allocRun(units(n), uint32(max(align>>unitShift, 1)), kind)
		return uint64(u) << unitShift, err
	case uint64(n) > p.mem.size:
		return 0, p.tooLarge(int64(n))
	default:
		u, err := p.allocHuge(uint32(roundUp(int64(n), blockSize)>>blockShift), kind)
		return uint64(u) << unitShift, err
	}
}

// refill takes a batch of a class's objects from the central list, returns one
// and puts the rest in the caller's cache.
func (p *Pool) refill(h *Heap, class uint32) (uint32, error) {
	p.jan.kick()
	var buf [batchMax]uint32
	want := 1 + classes[class].cap/2
	if p.dbg != nil {
		want = 1
	}
	n, err := p.take(&p.central[class], buf[:want])
	if err != nil {
		return 0, err
	}
	rest := buf[1:n]
	if len(rest) > 0 {
		c, s := p.ownCache(h)
		n := c.stock(class, rest)
		p.local.letGo(s)
		p.putBack(&p.central[class], rest[n:])
	}
	return buf[0], nil
}

// take fills buf with objects of a list, at least one.
func (p *Pool) take(ce *central, buf []uint32) (int, error) {
	for reclaimed := false; ; {
		if n := ce.take(&p.table, buf); n > 0 {
			return n, nil
		}
		u, g := p.tryRun(classes[ce.class].units, 1, ce.kind())
		if g.flight == nil {
			return ce.adopt(&p.table, u, buf), nil
		}
		if err := p.makeRoom(g, &reclaimed); err != nil {
			if n := ce.take(&p.table, buf); n > 0 { // freed meanwhile
				return n, nil
			}
			return 0, err
		}
	}
}

// putBack gives objects to their list. It returns how many were free already.
func (p *Pool) putBack(ce *central, objs []uint32) (twice int) {
	if len(objs) == 0 {
		return 0
	}
	var empty [16]uint32
	units, twice := ce.put(&p.table, objs, empty[:])
	p.freeSpans(ce.class, units)
	p.counters.doubleFrees.Add(int64(twice))
	p.room.notify()
	return twice
}

// free is every Free that found its cache full, or no cache to use.
func (p *Pool) free(h *Heap, b []byte) error {
	if b == nil {
		return nil
	}
	if p.gone.Load() {
		return ErrClosed
	}
	if p.dbg != nil {
		return p.dbg.free(b)
	}
	return p.freeOne(h, b)
}

// freeOne frees one buffer by what its first unit holds.
func (p *Pool) freeOne(h *Heap, b []byte) error {
	off := p.mem.offset(b)
	w := p.table.at(off)
	if class, ok := w.small(off); ok {
		return p.freeSmall(h, class, uint32(off>>objShift))
	}
	u := uint32(off >> unitShift)
	if k, ok := w.run(off); ok {
		p.pushRun(h, u, k)
		return nil
	}
	switch {
	case w.kind() == kindFreed && p.starts(off):
		p.counters.doubleFrees.Add(1)
		return ErrDoubleFree
	case w.kind() == kindOwned:
		return p.freeOwned(w, off)
	case w.isHead() && off%unitSize == w.start():
		err := p.freeLarge(u)
		if err != nil {
			p.counters.doubleFrees.Add(1)
		}
		return err
	}
	p.counters.badFrees.Add(1)
	return ErrBadFree
}

// freeSmall puts an object in the caller's cache after making room there.
func (p *Pool) freeSmall(h *Heap, class, obj uint32) error {
	p.jan.kick()
	var buf [batchMax]uint32
	var k int
	var twice bool
	if p.dbg != nil {
		k, buf[0] = 1, obj
	} else {
		if h != nil {
			p.heedFlush(h)
		}
		c, s := p.ownCache(h)
		k, twice = c.spill(class, obj, &buf)
		p.local.letGo(s)
	}
	if twice {
		p.counters.doubleFrees.Add(1)
		return ErrDoubleFree
	}
	if p.putBack(&p.central[class], buf[:k]) > 0 {
		return ErrDoubleFree
	}
	return nil
}

// eachCentral calls f with every central list.
func (p *Pool) eachCentral(f func(*central)) {
	for c := range p.central {
		f(&p.central[c])
	}
	for _, q := range *p.quotas.Load() {
		if q != nil {
			for c := range q.central {
				f(&q.central[c])
			}
		}
	}
}

// starts reports whether a buffer starts at off, or started there.
func (p *Pool) starts(off uint64) bool {
	w := p.table.at(off)
	if _, ok := w.small(off); ok {
		return true
	}
	switch w.kind() {
	case kindOwned:
		s := p.table.span(uint32(off>>unitShift) - w.back())
		return classes[s.class%numClasses].startsObject(w.within(off))
	case kindHead, kindOHead:
		return off%unitSize == w.start()
	case kindFreed: // what was here is forgotten
		_, w = p.table.head(uint32(off >> unitShift))
		return off%objAlign == 0 && !w.isHead()
	}
	return false
}

// usable gives the bytes at off that belong to the allocation that starts there.
func (p *Pool) usable(off uint64) int {
	u := uint32(off >> unitShift)
	w := p.table.word(u)
	if w.isHead() {
		return int(w.length())<<unitShift - int(w.start())
	}
	return int(classes[p.table.span(u-w.back()).class].size)
}
