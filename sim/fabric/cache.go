package fabric

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// Cache is a NIC's memory for things of one kind, the rest of which are in the host's
// memory. What is used and not there is fetched, for the one that was used longest ago;
// the queue pair that uses it waits, and others go on meanwhile. So many things, used
// with equal chance, are used Fetches/(miss Miss) times a second at most, where miss is
// 1 - Entries/things.
type Cache struct {
	Entries int      // 0: room for all, and nothing of this
	Fetches int      // at a time
	Miss    des.Time // time of a fetch
}

// CacheStats counts what a cache did.
type CacheStats struct{ Hits, Misses uint64 }

// Add adds another's.
func (s *CacheStats) Add(o CacheStats) { s.Hits, s.Misses = s.Hits+o.Hits, s.Misses+o.Misses }

// entry is what a cache knows of one thing.
type entry struct {
	prev, next *entry // by use, if it is there
	there      bool
	fetching   bool
	readyAt    des.Time // fetching: when it will be there
}

// cache is one of a NIC's.
type cache struct {
	cfg   *Cache
	root  entry // of the ring of entries, from the latest used
	n     int
	slots []des.Time // when each fetch ends
	stats CacheStats
}

func (c *cache) init(cfg *Cache) {
	c.cfg = cfg
	c.root.prev, c.root.next = &c.root, &c.root
	c.slots = make([]des.Time, cfg.Fetches)
}

func (c *cache) enabled() bool { return c.cfg.Entries > 0 }

func (x *entry) unlink() { x.prev.next, x.next.prev = x.next, x.prev }

func (c *cache) front(x *entry) {
	x.prev, x.next = &c.root, c.root.next
	x.prev.next, x.next.prev = x, x
}

// touch uses an entry at a time and says when it is there: now, or later, and then
// fetched is whether this call began to fetch it, which takes the time of a miss.
func (c *cache) touch(x *entry, now, miss des.Time) (at des.Time, fetched bool) {
	switch {
	case x.there:
		x.unlink()
		c.front(x)
		c.stats.Hits++
		return now, false
	case x.fetching:
		return x.readyAt, false
	}
	c.stats.Misses++
	first := 0
	for i := range c.slots {
		if c.slots[i] < c.slots[first] {
			first = i
		}
	}
	c.slots[first] = max(c.slots[first], now) + miss
	x.fetching, x.readyAt = true, c.slots[first]
	return x.readyAt, true
}

// arrived puts an entry that was fetched into the cache.
func (c *cache) arrived(x *entry) {
	x.fetching, x.there = false, true
	if c.n == c.cfg.Entries {
		old := c.root.prev
		old.unlink()
		old.there = false
	} else {
		c.n++
	}
	c.front(x)
}

// forget takes an entry that is not used any more out, or lets it not come.
func (c *cache) forget(x *entry) {
	x.fetching = false
	if x.there {
		x.unlink()
		x.there = false
		c.n--
	}
}

// Caches counts what the caches of a NIC did.
type Caches struct{ Contexts, WQEs, Pages CacheStats }

// Caches gives the counters.
func (h *Host) Caches() Caches { return Caches{h.contexts.stats, h.wqes.stats, h.pages.stats} }

// fetch is an entry on its way, nil if only the time counts, and who is to go on with
// packets that it received when it is there.
type fetch struct {
	c *cache
	x *entry
	q *QP
}

// use touches an entry for a queue pair, which goes on when it has come if own is not
// nil, and says when it is there.
func (h *Host) use(c *cache, x *entry, miss des.Time, own *QP) des.Time {
	at, fetched := c.touch(x, h.f.k.Now(), miss)
	if fetched {
		h.await(at, fetch{c, x, own})
	}
	return at
}

func (h *Host) await(at des.Time, f fetch) {
	h.f.k.At(at, h.f.fetchKind, int32(h.id), h.fetches.Put(f))
}

// fetched is the end of a fetch.
func (h *Host) fetched(i int32) {
	f := h.fetches.Take(i)
	if f.x != nil && f.x.fetching && f.x.readyAt <= h.f.k.Now() { // it was not forgotten since
		f.c.arrived(f.x)
	}
	if f.q != nil {
		h.goOn(f.q)
	}
}

// ahead gets what a queue pair's next packet needs and says when to come again.
func (h *Host) ahead(q *nic.QP) (at des.Time) {
	own := q.Owner.(*QP)
	if own.closed {
		return 0
	}
	if h.contexts.enabled() {
		at = h.context(own, q.NextIsRead())
	}
	if at <= h.f.k.Now() && own.supply != nil {
		at = h.supplied(own)
	}
	return at
}

// stalls keeps a packet that arrived until what it needs is there, after those before it
// of its queue pair.
func (h *Host) stalls(fr *frame) bool {
	q := h.nic.QP(fr.pkt.DestQP)
	if q == nil {
		return false
	}
	own, at := q.Owner.(*QP), h.f.k.Now()
	if h.contexts.enabled() {
		at = h.context(own, fr.pkt.Op.IsRead())
	}
	if at <= h.f.k.Now() && own.held.head == nil && own.supply == nil {
		return false
	}
	own.held.push(fr)
	if at <= h.f.k.Now() {
		h.goOn(own)
	}
	return true
}

// goOn takes the packets of a queue pair that have what they need.
func (h *Host) goOn(q *QP) {
	for fr := q.held.head; fr != nil && !q.entry.fetching && h.received(q, &fr.pkt); fr = q.held.head {
		q.held.pop()
		h.accept(fr)
	}
}
