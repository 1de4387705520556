package scenario

import (
	"cmp"
	"math/bits"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// Cache is one of a NIC's; see fabric.Cache.
type Cache struct {
	Entries int  `json:"entries,omitempty"` // 0: room for all
	Fetches int  `json:"fetches,omitempty"` // at a time; default 16
	Miss    Span `json:"miss,omitempty"`    // time of a fetch; default 800ns
}

func (c *Cache) cache() fabric.Cache {
	return fabric.Cache{Entries: c.Entries, Fetches: c.Fetches, Miss: c.Miss.time()}
}

// fillCaches takes the defaults of caches that are there.
func (n *NIC) fillCaches() {
	for _, c := range []*Cache{&n.WQECache, &n.MTTCache} {
		if c.Entries > 0 {
			c.Fetches, c.Miss = cmp.Or(c.Fetches, 16), cmp.Or(c.Miss, Span(800*des.Nanosecond))
		}
	}
	if n.MTTCache.Entries > 0 {
		n.PageBytes = cmp.Or(n.PageBytes, fabric.DefaultPageBytes)
	}
}

// checkCaches refuses caches that cannot be, and what is of a cache that is not there.
func (s *Scenario) checkCaches() error {
	w := &s.Workload
	for _, c := range []struct {
		name string
		*Cache
	}{{"nic.wqe_cache", &s.NIC.WQECache}, {"nic.mtt_cache", &s.NIC.MTTCache}} {
		if err := checkLimits([]limit{{c.name + ".entries", c.Entries, 0, 1 << 24, "0 is room for all"}}); err != nil {
			return err
		}
		switch {
		case c.Entries > 0:
			if err := checkLimits([]limit{{c.name + ".fetches", c.Fetches, 1, 1024, "it is how many run at a time"}}); err != nil {
				return err
			}
			if c.Miss.time() < des.Nanosecond || c.Miss.time() > des.Millisecond {
				return errors.Errorf("%s.miss is %v, want 1ns to 1ms: it is the time of a fetch", c.name, c.Miss)
			}
		case c.Fetches != 0 || c.Miss != 0:
			return errors.Errorf("%s has fetches or miss and no entries: give entries too, or leave them out", c.name)
		}
	}
	type setting struct {
		name string
		v    int
	}
	pages := []setting{{"nic.page_bytes", s.NIC.PageBytes}}
	for i := range s.Variants {
		pages = append(pages, setting{"variants.page_bytes", s.Variants[i].PageBytes})
	}
	for _, f := range append(pages, setting{"workload.memory_bytes", w.MemoryBytes}) {
		if f.v != 0 && s.NIC.MTTCache.Entries == 0 {
			return errors.Errorf("%s is %d and nic.mtt_cache has no entries, without which it has no effect: give entries, or leave it out", f.name, f.v)
		}
	}
	for _, f := range pages {
		if f.v != 0 && (f.v < fabric.DefaultPageBytes || f.v > 1<<30 || bits.OnesCount(uint(f.v)) != 1) {
			return errors.Errorf("%s is %d, want a power of two, %d to %d: huge pages have 2097152", f.name, f.v, fabric.DefaultPageBytes, 1<<30)
		}
	}
	if w.MemoryBytes == 0 {
		return nil
	}
	return checkLimits([]limit{{"workload.memory_bytes", w.MemoryBytes, max(rawMessage, w.Size.Fixed), 1 << 32, "it has room for a message, and 0 is the same place for all"}})
}
