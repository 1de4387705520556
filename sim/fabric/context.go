package fabric

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// DefaultPacketGap is between packets that a NIC sends: 200 million a second.
const DefaultPacketGap = 5 * des.Nanosecond

// Contexts is a NIC's cache of the contexts of queue pairs, of which each packet that is
// sent or received needs that of its queue pair; and how fast the NIC is with packets for
// which everything is there.
type Contexts struct {
	Cache
	ReadMiss des.Time // for a READ, 0: as others
	Gap      des.Time // between packets that are sent; 0: DefaultPacketGap, also without a cache
	ReadGap  des.Time // between READ requests, 0: as others
}

// ContextsCX6 is fitted to a public measurement of two ConnectX-6 with 32 threads: READs
// at 83, 42 and 21 million a second with 32, 512 and 4096 queue pairs, WRITEs at 123
// and 111 million with 32 and 4096.
func ContextsCX6() Contexts {
	return Contexts{
		Cache:    Cache{Entries: 273, Fetches: 16, Miss: 154 * des.Nanosecond},
		ReadMiss: 816 * des.Nanosecond,
		Gap:      8130 * des.Picosecond, ReadGap: 12048 * des.Picosecond,
	}
}

// ContextsCX5 is assumed: 1024 entries, and half of the rate at 5000 queue pairs.
func ContextsCX5() Contexts {
	return Contexts{Cache: Cache{Entries: 1024, Fetches: 16, Miss: 402 * des.Nanosecond}, Gap: 10 * des.Nanosecond}
}

// context uses the context of a queue pair and says when it is there.
func (h *Host) context(q *QP, read bool) des.Time {
	c := &h.f.cfg.NIC.Contexts
	miss := c.Miss
	if read && c.ReadMiss > 0 {
		miss = c.ReadMiss
	}
	return h.use(&h.contexts, &q.entry, miss, q)
}

// pace notes that a packet of a queue pair begins.
func (h *Host) pace(q *nic.QP) {
	c := &h.f.cfg.NIC.Contexts
	gap := c.Gap
	if c.ReadGap > 0 && q.NextIsRead() {
		gap = c.ReadGap
	}
	h.packetAt = h.f.k.Now() + gap
}
