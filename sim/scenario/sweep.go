package scenario

import (
	"maps"
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
	"connections": func(s *Scenario, v int) error {
		s.Workload.Connections = v
		return nil
	},
	"fanout": func(s *Scenario, v int) error {
		s.Workload.Fanout = v
		return nil
	},
	"lookup_us": func(s *Scenario, v int) error {
		s.Workload.Lookup = Span(des.Time(v) * des.Microsecond)
		return nil
	},
	"jitter_us": func(s *Scenario, v int) error {
		s.Workload.Jitter = Span(des.Time(v) * des.Microsecond)
		return nil
	},
	"load_percent": func(s *Scenario, v int) error {
		s.Workload.LoadPercent = v
		return nil
	},
	"outstanding": func(s *Scenario, v int) error {
		s.Workload.Outstanding = v
		return nil
	},
	"quantum": func(s *Scenario, v int) error {
		s.NIC.Quantum = v
		return nil
	},
	"hosts": func(s *Scenario, v int) error { return s.scale(v) },
	"size_bytes": func(s *Scenario, v int) error {
		s.Workload.Size = Sizes{Fixed: v}
		return nil
	},
	"window_bytes": func(s *Scenario, v int) error {
		for i := range s.Variants {
			s.Variants[i].WindowBytes = v
		}
		return nil
	},
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
	for _, v := range s.Sweep.Values {
		if _, err := s.at(v); err != nil {
			return errors.Wrapf(err, "sweep.values: at %d", v)
		}
	}
	return nil
}
