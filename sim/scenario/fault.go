package scenario

import (
	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
)

// faultKinds with what they are of.
var faultKinds = map[string]string{
	"loss": "host", "down": "host", "crash": "host", "slow": "host",
}

func (s *Scenario) checkFaults() error {
	for i := range s.Faults {
		f := &s.Faults[i]
		of, ok := faultKinds[f.Kind]
		if !ok {
			return oneOf("faults.kind", f.Kind, "loss", "down", "crash", "slow")
		}
		if f.At > s.Duration {
			return errors.Errorf("faults.at is %v, want at most duration, %v: later there is no load", f.At, s.Duration)
		}
		if f.Until != 0 && f.Until <= f.At {
			return errors.Errorf("faults.until is %v, want more than at, %v, or none for ever", f.Until, f.At)
		}
		if of == "host" && (f.Host == nil || *f.Host < 0 || *f.Host >= s.Topology.Hosts) {
			return errors.Errorf("faults.host of %q is missing or not one of the %d hosts: give a number from 0", f.Kind, s.Topology.Hosts)
		}
		if !(f.Rate >= 0 && f.Rate <= 1) {
			return errors.Errorf("faults.rate is %v, want 0 to 1: it is a share of frames", f.Rate)
		}
	}
	return nil
}

// plan has the faults happen.
func (b *bench) plan(faults []Fault) {
	for _, f := range faults {
		b.n.at(b.start+f.At.time(), func() { b.n.fault(f, true) })
		if f.Until != 0 {
			b.n.at(b.start+f.Until.time(), func() { b.n.fault(f, false) })
		}
	}
}

// fault begins or ends a fault.
func (n *engines) fault(f Fault, begins bool) {
	host := n.fabric().Host(*f.Host)
	switch f.Kind {
	case "loss":
		rate := f.Rate
		if !begins {
			rate = 0
		}
		host.SetLoss(rate)
	case "down":
		host.SetDown(begins)
	case "crash":
		n.c.Node(*f.Host).Crash()
	case "slow":
		delay := n.s.Engine.StepDelay.time()
		if begins {
			delay = f.Delay.time()
		}
		n.c.Node(*f.Host).SetStepDelay(delay)
	}
}

// timeUpTo draws a time below the given one.
func timeUpTo(rng *des.Stream, most Span) des.Time { return des.Time(rng.N(int64(most))) }
