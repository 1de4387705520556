package bemalloc

import (
	"sync"
	"sync/atomic"
)

// local holds the caches of calls without a heap: one per P, or shards.
type local struct {
	perP   bool
	table  atomic.Pointer[cacheTable]
	shards []shard

	mu     sync.Mutex // held to replace table
	closed bool       // no further caches
	paused bool       // none for now
}

// maxP is how many Ps have caches; those beyond use the central lists.
const maxP = 1024

// cacheTable is the caches by P number. It is never changed, only replaced; a P
// without a cache has noCache.
type cacheTable [maxP]*cache

var noCaches = func() *cacheTable {
	t := new(cacheTable)
	for i := range t {
		t[i] = &noCache
	}
	return t
}()

// init chooses the kind of cache. With debug set, none ever fills, so that every
// call takes the slow path with the checks.
func (l *local) init(forceShards, debug bool) {
	l.perP = havePin && !forceShards
	l.closed = debug
	l.table.Store(noCaches)
	if !l.perP {
		l.shards = newShards(!debug)
	}
}

// of gives the cache of a P, to a goroutine that is pinned to it.
func (l *local) of(pid int) *cache {
	if uint(pid) >= maxP {
		return &noCache
	}
	return l.table.Load()[pid]
}

// hold gives the caller's cache, if it can have one, and keeps others off it until
// letGo(s): between the two the rules of a pinned section hold. Pool.Alloc and
// Pool.Free have it written out.
func (l *local) hold() (c *cache, s *shard) {
	if !havePin || !l.perP {
		s = l.shard()
		return &s.c, s
	}
	l.install()
	return l.of(procPin()), nil
}

// letGo ends what hold began. It does nothing for a heap's cache.
func (l *local) letGo(s *shard) {
	if s == ownShard {
		return
	}
	if s != nil {
		s.mu.Unlock()
	} else {
		procUnpin()
	}
}

// ownShard stands for the cache of a heap, which nobody else uses.
var ownShard = new(shard)

// ownCache is hold for a heap's cache, or without a heap for the caller's.
func (p *Pool) ownCache(h *Heap) (*cache, *shard) {
	if h != nil {
		return h.c, ownShard
	}
	return p.local.hold()
}

// install gives the current P a cache if it has none.
func (l *local) install() {
	pid := procPin()
	none := uint(pid) < maxP && l.table.Load()[pid] == &noCache
	procUnpin()
	if !none {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next := *l.table.Load()
	if l.closed || l.paused || next[pid] != &noCache {
		return
	}
	next[pid] = newCache()
	l.table.Store(&next)
}

// each calls f with every cache, for reading counts.
func (l *local) each(f func(*cache)) {
	for i := range l.shards {
		f(&l.shards[i].c)
	}
	l.table.Load().each(f)
}

func (t *cacheTable) each(f func(*cache)) {
	for _, c := range t {
		if c != &noCache {
			f(c)
		}
	}
}

// flush empties every cache through f, while others go on. Per P it replaces the
// table, so that no new section finds the old caches, and waits for those that
// did.
func (l *local) flush(mode flushMode, f func(*cache)) {
	l.mu.Lock()
	l.paused = l.paused || mode == flushPause
	l.closed = l.closed || mode == flushLast
	old := l.table.Swap(noCaches)
	l.mu.Unlock()
	if old != noCaches {
		gracePeriod()
	}
	old.each(func(c *cache) {
		c.wantFlush() // nobody finds it any more: it stays empty
		f(c)
	})
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		if mode != flushOnce {
			s.c.wantFlush()
		}
		f(&s.c)
		s.mu.Unlock()
	}
}

// resume lets caches fill again after flush stopped them.
func (l *local) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = false
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		if !l.closed {
			s.c.open()
		}
		s.mu.Unlock()
	}
}
