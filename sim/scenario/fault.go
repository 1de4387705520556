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
		f := &s.Faults[i]
		err := s.checkFault(f)
		if err == nil {
			err = s.checkIdleFault(f)
		}
		for k := range i {
			if err == nil {
				err = f.clash(&s.Faults[k])
			}
		}
		if err != nil {
			return errors.Wrapf(err, "fault %d of %d", i+1, len(s.Faults))
		}
	}
	return nil
}

// checkIdleFault refuses a fault that would change nothing.
func (s *Scenario) checkIdleFault(f *Fault) error {
	list := []unused{
		{"faults.kind stuck-pause", f.Kind == stuckFault, s.Switch.Lossy, "switch.lossy is of a network in which nobody obeys pauses"},
		{"faults.percent", f.Kind == slowFault, f.Percent == 100, "100 is as fast as without the fault"},
	}
	for i := range s.Variants {
		v := &s.Variants[i]
		raw := v.Transport == rcTransport || v.Transport == udTransport
		_, isTCP := s.tcpConfig(v)
		list = append(list,
			unused{"faults.kind slow", f.Kind == slowFault, raw, "variant " + v.Name + " has transport " + v.Transport + ", which takes no processor time"},
			unused{"faults.kind slow", f.Kind == slowFault, isTCP && s.TCP.FreeCPU, "tcp.free_cpu takes no processor time"},
			unused{"faults.gbps", true, f.Kind == slowMemoryFault && f.Gbps >= s.Topology.gbpsOf(*f.Host, v.Gbps), "variants.gbps of " + v.Name + " is not more"},
		)
	}
	return refuseUnused(list)
}

// clash refuses two faults of one thing at a time: the end of one would end the other, and
// after a crash there is nothing to have a fault.
func (f *Fault) clash(o *Fault) error {
	same := func(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	if !same(f.Host, o.Host) || !same(f.Switch, o.Switch) || !same(f.Leaf, o.Leaf) {
		return nil
	}
	if f.Kind == crashFault || o.Kind == crashFault {
		crash, other := f, o
		if o.Kind == crashFault {
			crash, other = o, f
		}
		if other.At < crash.At {
			return nil
		}
		return errors.Errorf("faults.at of %q is %v, and the host has crashed at %v: give an earlier time, or leave one of them out", other.Kind, other.At, crash.At)
	}
	lossy := func(kind string) bool { return kind == lossFault || kind == corruptFault }
	if f.Kind != o.Kind && !(lossy(f.Kind) && lossy(o.Kind)) || f.Until != 0 && f.Until <= o.At || o.Until != 0 && o.Until <= f.At {
		return nil
	}
	return errors.Errorf("faults.at of %q is %v, while %q from %v of the same place lasts, with which it would end: give other times, or leave one of them out", f.Kind, f.At, o.Kind, o.At)
}

func (s *Scenario) checkFault(f *Fault) error {
	k, ok := faultKinds[f.Kind]
	switch {
	case !ok:
		return oneOf("faults.kind", f.Kind, slices.Sorted(maps.Keys(faultKinds))...)
	case k.leaf && s.Topology.Kind != leafSpine:
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
	switches := s.Topology.switches()
	if k.leaf {
		switches = s.Topology.Spines
	}
	for _, n := range []struct {
		name string
		v    *int
		want bool
		end  int
	}{{"host", f.Host, k.host, s.Topology.Hosts}, {"switch", f.Switch, k.sw, switches}, {"leaf", f.Leaf, k.leaf, s.Topology.switches() - s.Topology.Spines}} {
		switch {
		case n.want && (n.v == nil || *n.v < 0 || *n.v >= n.end):
			return errors.Errorf("faults.%s of %q is missing or too large, want 0 to %d: it is a number from 0", n.name, f.Kind, n.end-1)
		case !n.want && n.v != nil:
			return errors.Errorf("faults.%s of %q has no meaning: leave it out", n.name, f.Kind)
		}
	}
	for _, n := range []struct {
		name      string
		set, want bool
	}{{"rate", f.Rate != 0, k.rate}, {"percent", f.Percent != 0, k.percent}, {"gbps", f.Gbps != 0, k.gbps}} {
		if n.set && !n.want {
			return errors.Errorf("faults.%s of %q has no meaning: leave it out", n.name, f.Kind)
		}
	}
	if k.rate && !(f.Rate > 0 && f.Rate <= 1) {
		return errors.Errorf("faults.rate of %q is %v, want more than 0, to 1: it is a share of frames", f.Kind, f.Rate)
	}
	if k.percent && (f.Percent < 1 || f.Percent > 1_000_000) {
		return errors.Errorf("faults.percent of %q is %d, want 1 to 1000000: of the time that tasks take, 1000 is ten times as slow", f.Kind, f.Percent)
	}
	if !k.gbps {
		return nil
	}
	if rate := s.Topology.gbpsOf(*f.Host, 0); f.Gbps < 1 || f.Gbps >= rate {
		return errors.Errorf("faults.gbps of %q is %d, want 1 to %d, less than the link's", f.Kind, f.Gbps, rate-1)
	}
	return nil
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
