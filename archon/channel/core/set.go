package core

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Set is the replicas of a service. Any goroutine may use it.
type Set struct {
	cfg  *Config
	list atomic.Pointer[[]*Replica] // ascending tiers; replaced, never changed

	mu        sync.Mutex // of changes and ejections
	ejections atomic.Uint64
	out       atomic.Int32 // replicas that are ejected
}

// NewSet makes an empty set; cfg has its defaults.
func NewSet(cfg *Config) *Set {
	s := &Set{cfg: cfg}
	s.list.Store(new([]*Replica))
	return s
}

// Add brings a replica in.
func (s *Set) Add(r *Replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append(slices.Clone(*s.list.Load()), r)
	slices.SortStableFunc(list, func(a, b *Replica) int { return a.Tier - b.Tier })
	s.list.Store(&list)
}

// Remove takes a replica out. Its attempts go on.
func (s *Set) Remove(r *Replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*s.list.Load()), func(x *Replica) bool { return x == r })
	s.list.Store(&list)
	s.recount()
}

// recount counts the ejected replicas; the caller holds mu.
func (s *Set) recount() {
	out := int32(0)
	for _, r := range *s.list.Load() {
		if r.Ejected() {
			out++
		}
	}
	s.out.Store(out)
}

// Replicas gives them all; the slice must not be changed.
func (s *Set) Replicas() []*Replica { return *s.list.Load() }

// Ejections is how often a replica was ejected.
func (s *Set) Ejections() uint64 { return s.ejections.Load() }

// Wish says what kind of replica an attempt wants.
type Wish struct {
	Affinity uint64   // calls of equal affinity go to one replica while it bears the load; 0: none
	Probe    bool     // it suits as the probe of a half-open replica
	Not      []uint32 // IDs that were tried before, to be avoided
	Other    bool     // one of Not is no good at all
}

// Pick chooses a replica: within the lowest tier that has one, the better of two
// drawn, or that of the affinity. probe says that it is the probe of a half-open
// replica. With no good one left, an ejected or drained one is better than none; nil:
// no other is ready.
func (s *Set) Pick(now time.Duration, rng *rand.Rand, w *Wish) (r *Replica, probe bool) {
	list := *s.list.Load()
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].Tier == list[from].Tier {
			to++
		}
		if r, probe = s.pickOf(list[from:to], now, rng, w); r != nil {
			return r, probe
		}
		from = to
	}
	if r = best(list, now, rng, func(r *Replica) bool { return r.admission(now) == open }); r != nil && !w.Other {
		return r, false // tried before, but good
	}
	return best(list, now, rng, func(r *Replica) bool { return r.ready.Load() && (!w.Other || !slices.Contains(w.Not, r.ID)) }), false
}

// pickOf chooses within a tier, among replicas that were not tried.
func (s *Set) pickOf(tier []*Replica, now time.Duration, rng *rand.Rand, w *Wish) (r *Replica, probe bool) {
	if s.out.Load() != 0 {
		if r := s.due(tier, now, w); r != nil {
			return r, true
		}
	}
	good := func(r *Replica) bool { return r.admission(now) == open && !slices.Contains(w.Not, r.ID) }
	if w.Affinity != 0 {
		if r := affine(tier, w.Affinity, good); r != nil && !overloaded(r, tier) {
			return r, false
		}
	}
	return best(tier, now, rng, good), false
}

// due gives a replica whose ejection is over and claims its one probe. Where no call
// suits, any must do after a while.
func (s *Set) due(tier []*Replica, now time.Duration, w *Wish) *Replica {
	if !w.Probe {
		now -= s.cfg.EjectBase
	}
	for _, r := range tier {
		if r.until.Load() != 0 && r.admission(now) == halfOpen && !slices.Contains(w.Not, r.ID) && r.probing.CompareAndSwap(false, true) {
			return r
		}
	}
	return nil
}

// best is the better of two drawn ones that are good, or the best of all when few are.
func best(list []*Replica, now time.Duration, rng *rand.Rand, good func(*Replica) bool) *Replica {
	n := uint64(len(list))
	if n == 0 {
		return nil
	}
	if n > 2 {
		draw := rng.Uint64()
		i, j := draw>>32*n>>32, (draw&(1<<32-1))*(n-1)>>32
		if j >= i {
			j++
		}
		if a, b := list[i], list[j]; good(a) && good(b) {
			return better(a, b, now)
		}
	}
	// From a drawn start, so that equals share.
	start := rng.Uint64() >> 32 * n >> 32
	var r *Replica
	for k := range n {
		if c := list[(start+k)%n]; good(c) {
			if r == nil {
				r = c
			} else {
				r = better(r, c, now)
			}
		}
	}
	return r
}

func better(a, b *Replica, now time.Duration) *Replica {
	if b.score(now) < a.score(now) {
		return b
	}
	return a
}

// affine is the good replica with the highest hash of key and name (rendezvous
// hashing): when one leaves, only its keys move.
func affine(list []*Replica, key uint64, good func(*Replica) bool) *Replica {
	var r *Replica
	var top uint64
	for _, c := range list {
		if h := mix(key ^ c.Key); good(c) && (r == nil || h > top) {
			r, top = c, h
		}
	}
	return r
}

// overloaded tells whether a replica has more than twice its share of attempts.
func overloaded(r *Replica, list []*Replica) bool {
	sum := 0
	for _, c := range list {
		sum += int(c.outstanding.Load())
	}
	return int(r.outstanding.Load())*len(list) > 2*sum+8*len(list)
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
