package scenario

import "github.com/byteexpress/byteexpress/sim/des"

// training has every trainer push gradients to all servers each step. A push takes
// from the trainer's call until it has the server's answer. Pairs of trainers that
// have nothing to do with it exchange small messages meanwhile: the victims of what
// the pushes do to the network, each of which takes until it arrives.
type training struct {
	pushes  [][]*call // by trainer, then server
	victims []*line
	push    *tally
	victim  *tally
	steps   int
	quiet   int    // steps without a pause
	paused  uint64 // pauses up to the last step
}

func (w *training) setup(b *bench) error {
	w.push, w.victim = b.class("push"), b.class("victim")
	trainers, servers := b.s.roles(b.s.Workload.Servers)
	if err := expect(len(trainers) * (len(servers) + 1)); err != nil {
		return err
	}
	for _, from := range trainers {
		var calls []*call
		for _, to := range servers {
			c, err := b.newCall(from, to)
			if err != nil {
				return err
			}
			calls = append(calls, c)
		}
		w.pushes = append(w.pushes, calls)
	}
	for i, from := range trainers {
		to := trainers[(i+victimDistance)%len(trainers)]
		if to == from {
			continue
		}
		l, err := b.n.dial(from, to)
		if err != nil {
			return err
		}
		w.victims = append(w.victims, l)
	}
	return nil
}

// victimDistance is how many trainers lie between the two of a pair of victims: most
// pairs are of two leaves.
const victimDistance = 13

// roles gives the hosts of the two roles, of which the second has so many: they are
// spread evenly over the hosts.
func (s *Scenario) roles(second int) (a, b []int) {
	n := s.needs()
	for i := range n {
		if (i+1)*second/n > i*second/n {
			b = append(b, i)
		} else {
			a = append(a, i)
		}
	}
	return a, b
}

// period is the time of a step in which the servers' links are used as the load says.
func (w *Workload) period(gbps int) des.Time {
	mean := w.Size.Fixed + w.Size.Mean // one of them is 0
	bits := int64(w.Trainers) * int64(mean) * 8
	return des.Time(bits*1000/int64(gbps)) * 100 / des.Time(w.LoadPercent)
}

func (w *training) start(b *bench) error {
	cfg := &b.s.Workload
	step := cfg.period(b.s.Topology.Gbps)
	for at := b.start + step; at <= b.end; at += step { // one that is cut off does not count
		w.steps++
		b.at(at, w.look(b))
	}
	for i, calls := range w.pushes {
		sizes, rng := cfg.Size.sizer(b.random(uint64(i), 0)), b.random(uint64(i), 1)
		var next func()
		begin := b.start
		next = func() {
			for _, c := range calls {
				c.ask(b, w.push, sizes.next(), cfg.ReplyBytes, cfg.Lookup.time())
			}
			if begin += step; begin < b.end {
				b.at(begin+timeUpTo(&rng, cfg.Jitter), next)
			}
		}
		b.at(begin+timeUpTo(&rng, cfg.Jitter), next)
	}
	for i, l := range w.victims {
		rng, under := b.random(uint64(i), 2), new(marks)
		b.arrivals(l, under)
		var next func()
		next = func() {
			if b.now() >= b.end {
				return
			}
			under.push(b.begin(w.victim))
			b.broke(l.send(0, cfg.VictimBytes, nil))
			b.at(b.now()+exponentialTime(&rng, cfg.VictimPeriod.time()), next)
		}
		b.at(b.now()+exponentialTime(&rng, cfg.VictimPeriod.time()), next)
	}
	return nil
}

// look counts a step that ends now without a pause.
func (w *training) look(b *bench) func() {
	return func() {
		if n := b.n.fabric().PortTotals().PausesSent; n == w.paused {
			w.quiet++
		} else {
			w.paused = n
		}
	}
}

func (w *training) finish(_ *bench, r *Run) {
	r.count("steps", uint64(w.steps))
	r.count("steps_without_pause", uint64(w.quiet))
}
