package scenario

import "github.com/byteexpress/byteexpress/sim/des"

// workloads by their kinds.
var workloads = map[string]func() workload{
	incastKind:      func() workload { return new(incast) },
	trainingKind:    func() workload { return new(training) },
	inferenceKind:   func() workload { return new(inference) },
	connectionsKind: func() workload { return new(incast) },
	flowsKind:       func() workload { return new(flows) },
}

// incast has many hosts send to one, over a connection each or many (kind
// connections), with so many messages under way on each as the scenario says. A message
// takes from the sender's call until the receiver has it.
type incast struct {
	lines []*line
	took  *tally
}

func (w *incast) setup(b *bench) error {
	w.took = b.class("message")
	hosts, lines := b.s.Workload.Senders, b.s.Workload.Senders
	if b.s.Workload.Kind == connectionsKind {
		hosts, lines = b.s.Workload.Clients, b.s.Workload.Connections
	}
	for i := range lines {
		l, err := b.n.dial(i%hosts+1, 0)
		if err != nil {
			return err
		}
		w.lines = append(w.lines, l)
	}
	return nil
}

func (w *incast) start(b *bench) error {
	b.loop(w.lines, w.took)
	return nil
}

func (w *incast) finish(*bench, *Run) {}

// loop has the first end of every line send as long as the load lasts: a message when
// the one before ended, with so many under way as the scenario says. With a rate it
// waits in between, so long that all together would have the rate if messages took no
// time.
func (b *bench) loop(lines []*line, t *tally) {
	cfg, mean := &b.s.Workload, des.Time(0)
	if cfg.Rate > 0 {
		mean = des.Second / des.Time(cfg.Rate) * des.Time(len(lines)*cfg.Outstanding)
	}
	for i, l := range lines {
		sizes, rng, under := cfg.Size.sizer(b.random(uint64(i), 0)), b.random(uint64(i), 1), new(marks)
		b.arrivals(l, under)
		var next func(error)
		send := func() {
			if b.now() < b.end {
				under.push(b.begin(t))
				b.broke(l.send(0, sizes.next(), next))
			}
		}
		next = func(err error) {
			switch {
			case err != nil:
			case mean > 0:
				b.at(b.now()+exponentialTime(&rng, mean), send)
			default:
				send()
			}
		}
		for range cfg.Outstanding {
			b.at(b.now()+timeUpTo(&rng, max(cfg.Jitter, Span(mean))), send)
		}
	}
}

// arrivals ends the messages of a line's first end as they arrive, or when it broke.
func (b *bench) arrivals(l *line, under *marks) {
	l.got[1] = func(size int) {
		b.done(under.pop(), size)
		b.received(size)
	}
	l.failed = func(error) { b.failAll(under) }
}
