package scenario

import (
	"cmp"
	"strings"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
)

// flowsKind is the kind of a workload whose flows the file lists.
const flowsKind = "flows"

// nameRunes are what a flow's name is made of.
const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

const (
	maxFlows   = 100_000    // with their copies
	maxBegun   = 10_000_000 // messages of a flow that are begun at a rate
	maxStarted = 128        // messages of a flow under way, without a rate
)

// flow is one of the list with its defaults, some of which a sweep or another duration
// changes.
func (s *Scenario) flow(i int) *Flow {
	f := s.Workload.Flows[i]
	f.Name = cmp.Or(f.Name, "message")
	f.Copies = cmp.Or(f.Copies, 1)
	f.Until = cmp.Or(f.Until, s.Duration)
	if f.Rate == 0 {
		f.Outstanding = cmp.Or(f.Outstanding, s.Workload.Outstanding)
	}
	f.Size = cmp.Or(f.Size, s.Workload.Size)
	return &f
}

// flowHosts is how many hosts the flows name.
func (w *Workload) flowHosts() (n int) {
	for i := range w.Flows {
		n = max(n, w.Flows[i].From+1, w.Flows[i].To+1)
	}
	return n
}

// checkFlows refuses what cannot be.
func (s *Scenario) checkFlows() error {
	w := &s.Workload
	if w.Kind != flowsKind {
		return nil
	}
	lines := 0
	for i := range w.Flows {
		f := s.flow(i)
		if err := s.checkFlow(f); err != nil {
			return errors.Wrapf(err, "flow %d of %d", i+1, len(w.Flows))
		}
		lines += f.Copies
	}
	if lines > maxFlows {
		return errors.Errorf("workload.flows are %d with their copies, want %d at most", lines, maxFlows)
	}
	return nil
}

func (s *Scenario) checkFlow(f *Flow) error {
	if err := checkLimits([]limit{
		{"from", f.From, 0, s.Topology.Hosts - 1, "it is a host's number"},
		{"to", f.To, 0, s.Topology.Hosts - 1, "it is a host's number"},
		{"copies", f.Copies, 1, maxFlows, "it is how many connections do the same"},
		{"messages", f.Messages, 0, maxBegun, "0 is no bound"},
		{"outstanding", f.Outstanding, 0, maxStarted, "it is how many messages are under way"},
		{"rate_per_s", f.Rate, 0, 1_000_000_000, "0 is as fast as others end"},
	}); err != nil {
		return err
	}
	switch {
	case f.Rate > 0 && f.Outstanding > 0:
		return errors.New("outstanding has no effect, as rate_per_s is there, by which messages begin however many are under way: leave one of them out")
	case len(f.Name) > 60 || strings.Trim(f.Name, nameRunes) != "":
		return errors.Errorf("name is %.60q, want letters of a to z, digits, and any of -_. : charts are files of that name", f.Name)
	case f.From == f.To:
		return errors.Errorf("from and to are %d, want two hosts: give both", f.From)
	case f.At >= f.Until || f.Until > s.Duration:
		return errors.Errorf("at is %v and until %v, want at before until, and that within duration, %v", f.At, f.Until, s.Duration)
	case float64(f.Rate)*float64(f.Until-f.At)/float64(des.Second) > maxBegun:
		return errors.Errorf("rate_per_s is %d, which makes more than %d messages until %v: lower it", f.Rate, maxBegun, f.Until)
	}
	return f.Size.check("size")
}

// flows has every flow of the file send as it says.
type flows struct {
	lines []flowLine
}

// flowLine is a connection of a flow.
type flowLine struct {
	*line
	f    *Flow
	took *tally
}

func (w *flows) setup(b *bench) error {
	classes := map[string]*tally{}
	for i := range b.s.Workload.Flows {
		f := b.s.flow(i)
		if classes[f.Name] == nil {
			classes[f.Name] = b.class(f.Name)
		}
		for range f.Copies {
			l, err := b.n.dial(f.From, f.To)
			if err != nil {
				return err
			}
			w.lines = append(w.lines, flowLine{l, f, classes[f.Name]})
		}
	}
	return nil
}

func (w *flows) start(b *bench) error {
	for i, l := range w.lines {
		f, sizes, rng, under := l.f, l.f.Size.sizer(b.random(uint64(i), 0)), b.random(uint64(i), 1), new(marks)
		b.arrivals(l.line, under)
		end, left := b.start+f.Until.time(), cmp.Or(f.Messages, -1)
		var next func(error)
		send := func() {
			if b.now() < end && left != 0 {
				left--
				under.push(b.begin(l.took))
				b.broke(l.send(0, sizes.next(), next))
			}
		}
		begin := b.start + f.At.time() + timeUpTo(&rng, b.s.Workload.Jitter)
		if f.Rate > 0 {
			gap := func() des.Time { return exponentialTime(&rng, des.Second/des.Time(f.Rate)) }
			var again func()
			again = func() {
				send()
				if at := b.now() + gap(); at < end && left != 0 {
					b.at(at, again)
				}
			}
			b.at(begin+gap(), again)
			continue
		}
		next = func(err error) {
			if err == nil {
				send()
			}
		}
		for range f.Outstanding {
			b.at(begin, send)
		}
	}
	return nil
}

func (w *flows) finish(*bench, *Run) {}
