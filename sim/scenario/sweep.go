package scenario

import (
	"maps"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
)

// sweeps are the parameters that a sweep can be of, with what sets them.
var sweeps = map[string]func(s *Scenario, v int) error{
	"senders": func(s *Scenario, v int) error {
		if s.Workload.Kind != incastKind {
			return errors.Errorf("workload.kind is %q, which has no senders", s.Workload.Kind)
		}
		s.Topology.Hosts = s.needs()
		return s.scale(v + 1)
	},
	"hosts":        func(s *Scenario, v int) error { return s.scale(v) },
	"connections":  setting(func(s *Scenario, v int) { s.Workload.Connections = v }),
	"fanout":       setting(func(s *Scenario, v int) { s.Workload.Fanout = v }),
	"lookup_us":    setting(func(s *Scenario, v int) { s.Workload.Lookup = Span(des.Time(v) * des.Microsecond) }),
	"jitter_us":    setting(func(s *Scenario, v int) { s.Workload.Jitter = Span(des.Time(v) * des.Microsecond) }),
	"load_percent": setting(func(s *Scenario, v int) { s.Workload.LoadPercent = v }),
	"outstanding":  setting(func(s *Scenario, v int) { s.Workload.Outstanding = v }),
	"quantum":      setting(func(s *Scenario, v int) { s.NIC.Quantum = v }),
	"size_bytes":   setting(func(s *Scenario, v int) { s.Workload.Size = Sizes{Fixed: v} }),
	"memory_mib":   setting(func(s *Scenario, v int) { s.Workload.MemoryBytes = v << 20 }),
	"window_bytes": setting(func(s *Scenario, v int) {
		for i := range s.Variants {
			if s.Variants[i].Transport == rdmaTransport {
				s.Variants[i].WindowBytes = v
			}
		}
	}),
}

// setting is a parameter that takes any value; the check of the scenario comes after.
func setting(set func(s *Scenario, v int)) func(*Scenario, int) error {
	return func(s *Scenario, v int) error {
		set(s, v)
		return nil
	}
}

// at is the scenario at one value of its sweep, which it does not have itself.
func (s *Scenario) at(v int) (*Scenario, error) {
	c := *s
	c.Sweep = nil
	c.Variants = slices.Clone(s.Variants)
	if err := sweeps[s.Sweep.Of](&c, v); err != nil {
		return nil, err
	}
	return &c, c.check()
}

func (s *Scenario) checkSweep() error {
	if s.Sweep == nil {
		return nil
	}
	if sweeps[s.Sweep.Of] == nil {
		return oneOf("sweep.of", s.Sweep.Of, slices.Sorted(maps.Keys(sweeps))...)
	}
	if len(s.Sweep.Values) == 0 {
		return errors.New("sweep.values is empty, want at least one whole number")
	}
	if err := s.Sweep.checkUnused(s); err != nil {
		return err
	}
	for _, v := range s.Sweep.Values {
		if v < 0 || v > math.MaxInt32 {
			return errors.Errorf("sweep.values has %d, want 0 to %d: no parameter has other values", v, math.MaxInt32)
		}
		if _, err := s.at(v); err != nil {
			return errors.Wrapf(err, "sweep.values: at %d", v)
		}
	}
	return nil
}
