package scenario

import (
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/sim/des"
)

// inference has rankers fetch parameters: a fetch asks many shards at once and takes
// until the last of them has answered. Each attempt at a shard's answer is a class of
// its own.
type inference struct {
	shards  [][]*shard // by ranker
	fetches *tally
	answers *tally
	retries uint64
	hedges  uint64
}

func (w *inference) setup(b *bench) error {
	w.fetches, w.answers = b.class("fetch"), b.class("answer")
	load := &b.s.Workload
	rankers, servers := b.s.roles(load.Servers)
	if err := expect(len(rankers) * len(servers)); err != nil {
		return err
	}
	cfg, err := load.recovery()
	if err != nil {
		return err
	}
	for i, from := range rankers {
		rng, budget := b.random(uint64(i), 3), core.NewBudget(&cfg)
		var shards []*shard
		for first := 0; first+load.Replicas <= len(servers); first += load.Replicas {
			var calls []*call
			for _, to := range servers[first : first+load.Replicas] {
				c, err := b.newCall(from, to)
				if err != nil {
					return err
				}
				calls = append(calls, c)
			}
			s := b.newShard(calls, w.answers, &cfg, budget, &rng)
			s.retries, s.hedges = &w.retries, &w.hedges
			shards = append(shards, s)
		}
		w.shards = append(w.shards, shards)
	}
	return nil
}

func (w *inference) start(b *bench) error {
	cfg := &b.s.Workload
	for i, shards := range w.shards {
		sizes, rng := cfg.Size.sizer(b.random(uint64(i), 0)), b.random(uint64(i), 1)
		var fetch func()
		later := func() {
			wait := des.Time(0)
			if cfg.Think > 0 {
				wait = exponentialTime(&rng, cfg.Think.time())
			}
			b.at(b.now()+wait, fetch)
		}
		fetch = func() {
			if b.now() >= b.end {
				return
			}
			m, left, bytes, failed := b.begin(w.fetches), cfg.Fanout, 0, false
			for _, s := range choose(&rng, len(shards), cfg.Fanout) {
				size := sizes.next()
				bytes += size
				shards[s].ask(cfg.RequestBytes, size, cfg.Lookup.time(), func(ok bool) {
					failed = failed || !ok
					if left--; left > 0 {
						return
					}
					if failed {
						b.fail(m)
					} else {
						b.done(m, bytes)
					}
					later()
				})
			}
		}
		for range cfg.Outstanding { // not all at once: rankers do not wait for one another
			b.at(b.start+timeUpTo(&rng, max(cfg.Jitter, 2*cfg.Think, Span(des.Microsecond))), fetch)
		}
	}
	return nil
}

// choose gives k of n numbers: all in order, or some drawn.
func choose(rng *des.Stream, n, k int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if k < n {
		for i := range k {
			j := i + int(rng.N(int64(n-i)))
			all[i], all[j] = all[j], all[i]
		}
	}
	return all[:k]
}

func (w *inference) finish(_ *bench, r *Run) {
	if len(w.shards) > 0 && len(w.shards[0][0].calls) > 1 {
		r.count("retries", w.retries)
		r.count("hedges", w.hedges)
		ejections := uint64(0)
		for _, shards := range w.shards {
			for _, s := range shards {
				ejections += s.shared.Set.Ejections()
			}
		}
		r.count("ejections", ejections)
	}
}
