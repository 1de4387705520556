package scenario

import "github.com/byteexpress/byteexpress/sim/des"

// inference has rankers fetch parameters: a fetch asks many servers at once and takes
// until the last of them has answered. Each server's answer is a class of its own.
type inference struct {
	calls   [][]*call // by ranker, then server
	fetches *tally
	answers *tally
}

func (w *inference) setup(b *bench) error {
	w.fetches, w.answers = b.class("fetch"), b.class("answer")
	rankers, servers := b.s.roles(b.s.Workload.Servers)
	for _, from := range rankers {
		var calls []*call
		for _, to := range servers {
			c, err := b.newCall(from, to)
			if err != nil {
				return err
			}
			calls = append(calls, c)
		}
		w.calls = append(w.calls, calls)
	}
	return nil
}

func (w *inference) start(b *bench) error {
	cfg := &b.s.Workload
	for i, calls := range w.calls {
		sizes, rng := cfg.Size.sizer(b.random(uint64(i), 0)), b.random(uint64(i), 1)
		var fetch func()
		later := func() {
			wait := des.Time(0)
			if cfg.Think > 0 {
				wait = exponentialTime(&rng, cfg.Think.time())
			}
			b.n.at(b.now()+wait, fetch)
		}
		fetch = func() {
			if b.now() >= b.end {
				return
			}
			m, left, bytes, failed := b.begin(w.fetches), cfg.Fanout, 0, false
			for _, s := range choose(&rng, len(calls), cfg.Fanout) {
				size := sizes.next()
				bytes += size
				calls[s].askThen(b, w.answers, cfg.RequestBytes, size, cfg.Lookup.time(), func(ok bool) {
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
			b.n.at(b.start+timeUpTo(&rng, max(cfg.Jitter, 2*cfg.Think, Span(des.Microsecond))), fetch)
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

func (w *inference) finish(*bench, *Run) {}
