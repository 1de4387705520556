package bemalloc

import "sync/atomic"

// cache holds a magazine for each class: a stack of free objects. It belongs to a
// Heap, to a P, or to a shard, which says who may call its methods. The methods
// are allowed in a pinned section: they load and store, and nothing else.
//
// The counts of all magazines lie together, apart from the objects, so that the
// hot ones share few cache lines.
type cache struct {
	n     [numClasses]uint32 // objects in each magazine; others read it for Stats
	limit [numClasses]uint32 // most objects; 0 while a flush is wanted. Atomic.
	obj   [numClasses * magazineSlots]uint32

	wanted atomic.Bool // a flush is wanted of the owner
}

// slot gives the index in obj of a magazine's i-th object, i below magazineSlots.
func slot(class, i uint32) uint32 { return (class*magazineSlots + i) % (numClasses * magazineSlots) }

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
	for i := range c.limit {
		atomic.StoreUint32(&c.limit[i], classes[i].cap)
	}
}

// wantFlush makes the owner's next free call find its magazine full, look closer,
// and flush. Any goroutine may call it.
func (c *cache) wantFlush() {
	c.wanted.Store(true)
	for i := range c.limit {
		atomic.StoreUint32(&c.limit[i], 0)
	}
}

// pop takes an object of a class.
func (c *cache) pop(class uint32) (obj uint32, ok bool) {
	class %= numClasses
	n := c.n[class]
	if n == 0 {
		return 0, false
	}
	setCount(&c.n[class], n-1)
	return c.obj[slot(class, n-1)], true
}

// push puts an object, unless the magazine is full or has the object on top.
func (c *cache) push(class, obj uint32) bool {
	class %= numClasses
	n := c.n[class]
	if n >= atomic.LoadUint32(&c.limit[class]) || n > 0 && c.obj[slot(class, n-1)] == obj {
		return false
	}
	c.obj[slot(class, n)] = obj
	setCount(&c.n[class], n+1)
	return true
}

// objects gives a magazine's whole storage.
func (c *cache) objects(class uint32) []uint32 {
	return c.obj[class*magazineSlots:][:magazineSlots]
}

// stock puts objects as far as they fit and returns how many.
func (c *cache) stock(class uint32, objs []uint32) int {
	class %= numClasses
	n, room := c.n[class], atomic.LoadUint32(&c.limit[class])
	if n >= room {
		return 0
	}
	k := copy(c.objects(class)[n:room], objs)
	setCount(&c.n[class], n+uint32(k))
	return k
}

// spill puts obj after moving the older half of a full magazine to buf. It
// returns how many objects buf holds; obj is among them when the magazine takes
// none. twice tells that obj is on top already.
func (c *cache) spill(class, obj uint32, buf *[batchMax]uint32) (k int, twice bool) {
	class %= numClasses
	n, limit := c.n[class], atomic.LoadUint32(&c.limit[class])
	if n > 0 && c.obj[slot(class, n-1)] == obj {
		return 0, true
	}
	if limit == 0 {
		buf[0] = obj
		return 1, false
	}
	if n >= limit {
		all := c.objects(class)
		k = copy(buf[:], all[:n/2])
		copy(all, all[k:n])
		n -= uint32(k)
	}
	c.obj[slot(class, n)] = obj
	setCount(&c.n[class], n+1)
	return k, false
}

// held gives the objects cached of a class, for Stats.
func (c *cache) held(class int) int64 { return int64(atomic.LoadUint32(&c.n[class])) }

// empty reports whether nothing is cached.
func (c *cache) empty() bool {
	for i := range c.n {
		if c.held(i) > 0 {
			return false
		}
	}
	return true
}
