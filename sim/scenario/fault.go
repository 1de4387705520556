package scenario

import (
	"maps"
	"slices"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
)

// Kinds of faults.
const (
	lossFault       = "loss"        // of a host's link: frames are lost
	corruptFault    = "corrupt"     // of a host's link: frames arrive with a wrong checksum, and are as good as lost
	downFault       = "down"        // a host's link
	crashFault      = "crash"       // a host ends without a word
	slowFault       = "slow"        // a host's processor
	slowMemoryFault = "slow-memory" // the way from a host's NIC to its memory
	stuckFault      = "stuck-pause" // a host's NIC pauses its link for no reason
	switchFault     = "switch-down" // a switch with all its links
	uplinkFault     = "uplink-down" // the link between two switches
)

// faultKinds say what numbers a fault needs.
var faultKinds = map[string]struct{ host, rate, percent, gbps, sw, leaf, ends bool }{
	lossFault:       {host: true, rate: true},
	corruptFault:    {host: true, rate: true},
	downFault:       {host: true},
	crashFault:      {host: true},
	slowFault:       {host: true, percent: true},
	slowMemoryFault: {host: true, gbps: true},
	stuckFault:      {host: true, ends: true},
	switchFault:     {sw: true},
	uplinkFault:     {sw: true, leaf: true},
}

func (s *Scenario) checkFaults() error {
	for i := range s.Faults {
		if err := s.checkFault(&s.Faults[i]); err != nil {
			return errors.Wrapf(err, "fault %d of %d", i+1, len(s.Faults))
		}
	}
	return nil
}

func (s *Scenario) checkFault(f *Fault) error {
	k, ok := faultKinds[f.Kind]
	switch {
	case !ok:
		return oneOf("faults.kind", f.Kind, slices.Sorted(maps.Keys(faultKinds))...)
	case k.leaf && s.Topology.Kind != "leafspine":
		return errors.Errorf("faults.kind is %q, which needs links between switches: take topology.kind \"leafspine\"", f.Kind)
	case f.At > s.Duration:
		return errors.Errorf("faults.at of %q is %v, want at most duration, %v: later there is no load", f.Kind, f.At, s.Duration)
	case f.Until != 0 && f.Until <= f.At:
		return errors.Errorf("faults.until of %q is %v, want more than at, %v, or none for ever", f.Kind, f.Until, f.At)
	case k.ends && f.Until == 0:
		return errors.Errorf("faults.until of %q is missing: give the time when it ends", f.Kind)
	case f.Kind == crashFault && f.Until != 0:
		return errors.Errorf("faults.until of %q is %v: a host that crashed does not come back: leave it out", f.Kind, f.Until)
	}
	switches := s.switches()
	if k.leaf {
		switches = s.Topology.Spines
	}
	for _, n := range []struct {
		name string
		v    *int
		want bool
		end  int
	}{{"host", f.Host, k.host, s.Topology.Hosts}, {"switch", f.Switch, k.sw, switches}, {"leaf", f.Leaf, k.leaf, s.switches() - s.Topology.Spines}} {
		switch {
		case n.want && (n.v == nil || *n.v < 0 || *n.v >= n.end):
			return errors.Errorf("faults.%s of %q is missing or too large, want 0 to %d: it is a number from 0", n.name, f.Kind, n.end-1)
		case !n.want && n.v != nil:
			return errors.Errorf("faults.%s of %q has no meaning: leave it out", n.name, f.Kind)
		}
	}
	if k.rate && !(f.Rate > 0 && f.Rate <= 1) {
		return errors.Errorf("faults.rate of %q is %v, want more than 0, to 1: it is a share of frames", f.Kind, f.Rate)
	}
	if k.percent && (f.Percent < 1 || f.Percent > 1_000_000) {
		return errors.Errorf("faults.percent of %q is %d, want 1 to 1000000: of the time that tasks take, 1000 is ten times as slow", f.Kind, f.Percent)
	}
	if k.gbps && (f.Gbps < 1 || f.Gbps >= s.Topology.Gbps) {
		return errors.Errorf("faults.gbps of %q is %d, want 1 to %d, less than the link's", f.Kind, f.Gbps, s.Topology.Gbps-1)
	}
	return nil
}

// switches is how many the topology has: spines come first.
func (s *Scenario) switches() int {
	t := &s.Topology
	switch t.Kind {
	case "single":
		return 1
	case "leafspine":
		return t.Spines + (t.Hosts+t.PerLeaf-1)/t.PerLeaf
	}
	return 0
}

// plan has the faults happen.
func (b *bench) plan(faults []Fault) {
	for i := range faults {
		f := &faults[i]
		b.at(b.start+f.At.time(), func() { b.fault(f, true) })
		if f.Until != 0 {
			b.at(b.start+f.Until.time(), func() { b.fault(f, false) })
		}
	}
}

// fault begins or ends a fault: of the network, and what else it means to what is
// above that.
func (b *bench) fault(f *Fault, begins bool) {
	net := b.n.fabric()
	switch f.Kind {
	case lossFault, corruptFault:
		rate := f.Rate
		if !begins {
			rate = 0
		}
		net.Host(*f.Host).SetLoss(rate)
	case downFault:
		net.Host(*f.Host).SetDown(begins)
	case slowMemoryFault:
		gbps := f.Gbps
		if !begins {
			gbps = 0
		}
		net.Host(*f.Host).SetDMA(gbps)
	case stuckFault:
		if begins {
			net.Host(*f.Host).StickPause(f.Until.time() - f.At.time())
		}
	case switchFault:
		net.Switch(*f.Switch).SetDown(begins)
	case uplinkFault:
		b.broke(net.SetLinkDown(net.Switch(*f.Switch), net.Switch(b.s.Topology.Spines+*f.Leaf), begins))
	}
	b.n.fault(f, begins)
}

// speed is the percentage of "slow", 100 after its end.
func (f *Fault) speed(begins bool) int {
	if begins {
		return f.Percent
	}
	return 100
}

// fault does what concerns engines.
func (n *engines) fault(f *Fault, begins bool) {
	switch f.Kind {
	case crashFault:
		n.c.Node(*f.Host).Crash()
	case slowFault:
		node := n.c.Node(*f.Host)
		if cpu := node.CPU(); cpu != nil {
			cpu.SetSpeed(f.speed(begins))
		}
		node.SetStepDelay(n.s.Engine.StepDelay.time() * des.Time(f.speed(begins)) / 100)
	}
}

// timeUpTo draws a time below the given one.
func timeUpTo(rng *des.Stream, most Span) des.Time { return des.Time(rng.N(int64(most))) }
