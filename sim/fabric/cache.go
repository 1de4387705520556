package fabric

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// DefaultPacketGap is between packets that a NIC sends: 200 million a second.
const DefaultPacketGap = 5 * des.Nanosecond

// Cache is a NIC's memory for the contexts of queue pairs, the rest of which are in
// the host's memory. Each packet that is sent or received needs the context of its
// queue pair; what is not there is fetched, for the one that was used longest ago.
// Other queue pairs go on meanwhile. So many queue pairs, used with equal chance,
// are served at Fetches/(miss Miss), where miss is 1 - Entries/queue pairs, if
// that is less than one in Gap.
type Cache struct {
	Entries  int      // 0: room for all, and nothing of this
	Fetches  int      // at a time
	Miss     des.Time // time of a fetch
	ReadMiss des.Time // for a READ, 0: as others
	Gap      des.Time // between packets that are sent; 0: DefaultPacketGap, also without a cache
	ReadGap  des.Time // between READ requests, 0: as others
}

// CacheCX6 is fitted to a public measurement of two ConnectX-6 with 32 threads: READs
// at 83, 42 and 21 million a second with 32, 512 and 4096 queue pairs, WRITEs at 123
// and 111 million with 32 and 4096.
func CacheCX6() Cache {
	return Cache{
		Entries: 273, Fetches: 16,
		Miss: 154 * des.Nanosecond, ReadMiss: 816 * des.Nanosecond,
		Gap: 8130 * des.Picosecond, ReadGap: 12048 * des.Picosecond,
	}
}

// CacheCX5 is assumed: 1024 entries, and half of the rate at 5000 queue pairs.
func CacheCX5() Cache {
	return Cache{Entries: 1024, Fetches: 16, Miss: 402 * des.Nanosecond, Gap: 10 * des.Nanosecond}
}

// CacheStats counts what a NIC's cache did.
type CacheStats struct{ Hits, Misses uint64 }

// context is what the cache knows of a queue pair.
type context struct {
	prev, next *context // by use, if it is there
	there      bool
	fetching   bool
	readyAt    des.Time // fetching: when it will be there
	held       fifo     // packets that arrived and wait for it
}

// cache is a NIC's.
type cache struct {
	cfg   *Cache
	root  context // of the ring of contexts, from the latest used
	n     int
	slots []des.Time // when each fetch ends
	next  des.Time   // when the next packet may be sent
	stats CacheStats
}

func (c *cache) init(cfg *Cache) {
	c.cfg = cfg
	c.root.prev, c.root.next = &c.root, &c.root
	c.slots = make([]des.Time, cfg.Fetches)
}

func (c *cache) enabled() bool { return c.cfg.Entries > 0 }

func (x *context) unlink() { x.prev.next, x.next.prev = x.next, x.prev }

func (c *cache) front(x *context) {
	x.prev, x.next = &c.root, c.root.next
	x.prev.next, x.next.prev = x, x
}

// touch uses a context at a time and says when it is there: now, or later, and
// then fetched is whether this call began to fetch it.
func (c *cache) touch(x *context, now des.Time, read bool) (at des.Time, fetched bool) {
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
	miss := c.cfg.Miss
	if read && c.cfg.ReadMiss > 0 {
		miss = c.cfg.ReadMiss
	}
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

// arrived puts a context that was fetched into the cache.
func (c *cache) arrived(x *context) {
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

// forget takes the context of a queue pair that is closed out.
func (c *cache) forget(x *context) {
	if x.there {
		x.unlink()
		x.there = false
		c.n--
	}
}

// pace notes that a packet of a queue pair begins.
func (c *cache) pace(now des.Time, q *nic.QP) {
	gap := c.cfg.Gap
	if c.cfg.ReadGap > 0 && q.NextIsRead() {
		gap = c.cfg.ReadGap
	}
	c.next = now + gap
}

// CacheStats counts what the NIC's cache of contexts did.
func (h *Host) CacheStats() CacheStats { return h.cache.stats }

// fetch uses the context of a queue pair that wants to send, and says when it is
// there.
func (h *Host) fetch(q *nic.QP) des.Time {
	own, read := q.Owner.(*QP), q.NextIsRead()
	if own.closed {
		return 0
	}
	at, fetched := h.cache.touch(&own.context, h.f.k.Now(), read)
	if fetched {
		h.f.k.At(at, h.f.fetchKind, int32(h.id), h.fetches.Put(own))
	}
	return at
}

// stalls uses the context of the queue pair that a packet is for, and keeps the
// packet until it is there.
func (h *Host) stalls(fr *frame) bool {
	q := h.nic.QP(fr.pkt.DestQP)
	if q == nil {
		return false
	}
	own, now := q.Owner.(*QP), h.f.k.Now()
	at, fetched := h.cache.touch(&own.context, now, fr.pkt.Op.IsRead())
	if fetched {
		h.f.k.At(at, h.f.fetchKind, int32(h.id), h.fetches.Put(own))
	}
	if at <= now {
		return false
	}
	own.held.push(fr)
	return true
}

// fetched is the end of a fetch.
func (h *Host) fetched(i int32) {
	q := h.fetches.Take(i)
	if q.closed {
		q.fetching = false
	} else {
		h.cache.arrived(&q.context)
	}
	for fr := q.held.pop(); fr != nil; fr = q.held.pop() {
		h.accept(fr)
	}
}
