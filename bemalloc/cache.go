package bemalloc

import "sync/atomic"

// magazine is a stack of free objects of one class. Only the cache's owner
// changes it, but for limit; others read n for Stats.
type magazine struct {
	n     uint32
	limit uint32 // most objects; 0 while a flush is wanted. Atomic.
	obj   [magazineSlots]uint32
}

const slotMask = magazineSlots - 1

// cache holds a magazine for each class. It belongs to a Heap, to a P, or to a
// shard, which says who may call its methods. The methods are allowed in a pinned
// section: they load and store, and nothing else.
type cache struct {
	mags   [numClasses]magazine
	wanted atomic.Bool // a flush is wanted of the owner
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
	c.wanted.Store(false)
	for i := range c.mags {
		atomic.StoreUint32(&c.mags[i].limit, classes[i].cap)
	}
}

// wantFlush makes the owner's next free call find its magazine full, look closer,
// and flush. Any goroutine may call it.
func (c *cache) wantFlush() {
	c.wanted.Store(true)
	for i := range c.mags {
		atomic.StoreUint32(&c.mags[i].limit, 0)
	}
}

// pop takes an object of a class.
func (c *cache) pop(class uint8) (obj uint32, ok bool) {
	m := &c.mags[class&classMask]
	n := m.n
	if n == 0 {
		return 0, false
	}
	setCount(&m.n, n-1)
	return m.obj[(n-1)&slotMask], true
}

// push puts an object, unless the magazine is full or has the object on top.
func (c *cache) push(class uint8, obj uint32) bool {
	m := &c.mags[class&classMask]
	n := m.n
	if n >= atomic.LoadUint32(&m.limit) || n > 0 && m.obj[(n-1)&slotMask] == obj {
		return false
	}
	m.obj[n&slotMask] = obj
	setCount(&m.n, n+1)
	return true
}

// stock puts objects as far as they fit and returns how many.
func (c *cache) stock(class uint8, objs []uint32) int {
	m := &c.mags[class&classMask]
	n := m.n
	room := atomic.LoadUint32(&m.limit)
	if n >= room {
		return 0
	}
	k := copy(m.obj[n:room], objs)
	setCount(&m.n, n+uint32(k))
	return k
}

// spill puts obj after moving the older half of a full magazine to buf. It
// returns how many objects buf holds; obj is among them when the magazine takes
// none. twice tells that obj is on top already.
func (c *cache) spill(class uint8, obj uint32, buf *[batchMax]uint32) (k int, twice bool) {
	m := &c.mags[class&classMask]
	n := m.n
	if n > 0 && m.obj[(n-1)&slotMask] == obj {
		return 0, true
	}
	limit := atomic.LoadUint32(&m.limit)
	if limit == 0 {
		buf[0] = obj
		return 1, false
	}
	if n >= limit {
		k = copy(buf[:], m.obj[:n/2])
		copy(m.obj[:], m.obj[k:n])
		n -= uint32(k)
	}
	m.obj[n&slotMask] = obj
	setCount(&m.n, n+1)
	return k, false
}

// held gives the objects cached of a class, for Stats.
func (c *cache) held(class int) int64 { return int64(atomic.LoadUint32(&c.mags[class].n)) }

// empty reports whether nothing is cached.
func (c *cache) empty() bool {
	for i := range c.mags {
		if c.held(i) > 0 {
			return false
		}
	}
	return true
}
