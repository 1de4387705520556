package scenario

// workloads by their kinds.
var workloads = map[string]func() workload{
	incastKind: func() workload { return new(incast) },
}

// incast has many hosts send to one, each with so many messages under way as the
// scenario says. A message takes from the sender's call until the receiver has it.
type incast struct {
	lines []*line
	took  *tally
}

func (w *incast) setup(b *bench) error {
	w.took = b.class("message")
	for i := range b.s.Workload.Senders {
		l, err := b.n.dial(i+1, 0)
		if err != nil {
			return err
		}
		w.lines = append(w.lines, l)
	}
	return nil
}

func (w *incast) start(b *bench) error {
	cfg := &b.s.Workload
	for i, l := range w.lines {
		sizes, rng := cfg.Size.sizer(b.random(uint64(i), 0)), b.random(uint64(i), 1)
		under := new(marks)
		l.got[1] = func(size int) {
			b.done(under.pop(), size)
			b.received(size)
		}
		l.failed = func(error) {
			for len(under.list) > 0 {
				b.fail(under.pop())
			}
		}
		var next func(error)
		next = func(err error) {
			if err != nil || b.now() >= b.end {
				return
			}
			m := b.begin(w.took)
			under.push(m)
			b.broke(l.send(0, sizes.next(), next))
		}
		for range cfg.Outstanding {
			b.n.at(b.now()+timeUpTo(&rng, cfg.Jitter), func() { next(nil) })
		}
	}
	return nil
}

func (w *incast) finish(b *bench, r *Run) {}
