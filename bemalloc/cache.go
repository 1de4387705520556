package bemalloc

import (
	"sync"
	"sync/atomic"
)

// cacheClasses is numClasses rounded up to a power of two, so that a mask bounds
// an index.
const cacheClasses = 64

// cache holds a magazine for each class: a stack of free objects. It belongs to a
// Heap, to a P, or to a shard, which says who may call its methods. The methods
// are allowed in a pinned section: they load and store, and nothing else.
//
// The counts of all magazines lie together, apart from the objects, so that the
// hot ones share few cache lines.
type cache struct {
	mag [cacheClasses]magazine
	obj [cacheClasses][magazineSlots]uint32

	runs runCache

	gate   sync.Mutex  // held to open it, or to want a flush
	wanted atomic.Bool // a flush is wanted of the owner
}

// magazine counts the objects of one class.
type magazine struct {
	n     uint32 // objects; others read it for Stats
	limit uint32 // most objects; 0 while a flush is wanted: others set it
}

// noCache is the cache of a P that has none yet: always empty and full.
var noCache cache

func newCache() *cache {
	c := new(cache)
	c.open()
	return c
}

// open lets the magazines fill.
func (c *cache) open() {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.wanted.Store(false)
	for i := range classes {
		atomic.StoreUint32(&c.mag[i].limit, classes[i].cap)
	}
	atomic.StoreUint32(&c.runs.limit, shareMin)
}

// wantFlush makes the owner's next free call find its magazine full, look closer,
// and flush. Any goroutine may call it.
func (c *cache) wantFlush() {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.wanted.Store(true)
	for i := range c.mag {
		atomic.StoreUint32(&c.mag[i].limit, 0)
	}
	atomic.StoreUint32(&c.runs.limit, 0)
}

// pop takes an object of a class. It and push are small enough to be inlined.
func (c *cache) pop(class uint32) (obj uint32, ok bool) {
	k := class % cacheClasses
	m, row := &c.mag[k], &c.obj[k]
	n := m.n
	if n == 0 {
		return 0, false
	}
	store(&m.n, n-1)
	return row[(n-1)%magazineSlots], true
}

// push puts an object, unless the magazine is full or has the object on top.
func (c *cache) push(class, obj uint32) bool {
	k := class % cacheClasses
	m, row := &c.mag[k], &c.obj[k]
	n := m.n
	if n >= load(&m.limit) || n > 0 && row[(n-1)%magazineSlots] == obj {
		return false
	}
	row[n%magazineSlots] = obj
	store(&m.n, n+1)
	return true
}

// stock puts objects as far as they fit and returns how many.
func (c *cache) stock(class uint32, objs []uint32) int {
	m := &c.mag[class%cacheClasses]
	n, room := m.n, load(&m.limit)
	if n >= room {
		return 0
	}
	k := copy(c.obj[class%cacheClasses][n:room], objs)
	store(&m.n, n+uint32(k))
	return k
}

// spill puts obj after moving the older half of a full magazine to buf. It
// returns how many objects buf holds; obj is among them when the magazine takes
// none. twice tells that obj is on top already.
func (c *cache) spill(class, obj uint32, buf *[batchMax]uint32) (k int, twice bool) {
	m, all := &c.mag[class%cacheClasses], &c.obj[class%cacheClasses]
	n, limit := m.n, load(&m.limit)
	if n > 0 && all[n-1] == obj {
		return 0, true
	}
	if limit == 0 {
		buf[0] = obj
		return 1, false
	}
	if n >= limit {
		k = copy(buf[:], all[:n/2])
		copy(all[:], all[k:n])
		n -= uint32(k)
	}
	all[n] = obj
	store(&m.n, n+1)
	return k, false
}

// held gives the objects cached of a class, for Stats.
func (c *cache) held(class int) int64 { return int64(atomic.LoadUint32(&c.mag[class].n)) }

// heldUnits gives the units of cached runs, for Stats.
func (c *cache) heldUnits() int64 { return int64(atomic.LoadUint32(&c.runs.held)) }

// empty reports whether nothing is cached.
func (c *cache) empty() bool {
	for i := range c.mag {
		if c.held(i) > 0 {
			return false
		}
	}
	return c.heldUnits() == 0
}
