package scenario

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// Scale makes the scenario one of so many hosts. The roles keep their shares, and the
// times between steps or fetches theirs of what a step or fetch takes. A single switch
// keeps its buffer, less its headroom, which grows with its ports. Of a
// leaf-spine network the uplinks keep theirs too, and so does the buffer, less its
// headroom, and with it the marking thresholds: it shrinks with the pairs of sender
// and receiver that share a leaf, which is what queues there grow with. So a small
// network is congested as the large one is. Faults strike what there is.
func (s *Scenario) Scale(hosts int) error {
	c := *s
	if err := c.scale(hosts); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	*s = c
	return nil
}

// scale does it without a check.
func (s *Scenario) scale(hosts int) error {
	if hosts == s.Topology.Hosts {
		return nil
	}
	if k := s.Topology.Kind; s.Workload.Kind == flowsKind || k == dumbbell || k == fatTree || k == graph {
		return errors.Errorf("hosts is %d and the scenario has %d: neither listed flows nor topology.kind %q can be scaled", hosts, s.Topology.Hosts, k)
	}
	c := *s
	if err := c.resize(hosts); err != nil {
		return err
	}
	if c.Topology.Kind != pairOfHosts {
		was, now := s.headroom(), c.headroom()
		pool := s.Switch.BufferBytes - was
		shrink := func(v int) int { return int(int64(v) * int64(c.pairs()) / int64(max(s.pairs(), 1))) }
		c.Switch.BufferBytes = now + max(shrink(pool), 4*c.NIC.MTU)
		if c.Topology.Kind == leafSpine {
			thresholds := func(v int) int { return int(int64(v) * int64(c.Switch.BufferBytes) / int64(s.Switch.BufferBytes)) }
			c.Switch.KminBytes, c.Switch.KmaxBytes = thresholds(s.Switch.KminBytes), thresholds(s.Switch.KmaxBytes)
			c.Switch.EgressBytes = thresholds(s.Switch.EgressBytes)
		}
		c.Switch.EgressBytes = min(c.Switch.EgressBytes, c.Switch.BufferBytes)
	}
	c.Faults = slices.Clone(s.Faults)
	for i := range c.Faults {
		f := &c.Faults[i]
		spines := c.Topology.Spines
		if f.Switch != nil && *f.Switch >= s.Topology.Spines { // a leaf
			spines = c.Topology.switches()
		}
		f.Host, f.Switch, f.Leaf = within(f.Host, hosts), within(f.Switch, spines), within(f.Leaf, c.Topology.switches()-c.Topology.Spines)
	}
	*s = c
	return nil
}

// within counts a number around, so that a fault strikes something that there is.
func within(v *int, n int) *int {
	if v == nil || n <= 0 {
		return v
	}
	w := *v % n
	return &w
}

// resize gives the roles and the switches of so many hosts.
func (s *Scenario) resize(hosts int) error {
	w, t := &s.Workload, &s.Topology
	share := func(n int) int { return min(max((n*hosts+s.needs()/2)/s.needs(), 1), hosts-1) }
	if hosts < 2 || hosts > maxHosts {
		return errors.Errorf("hosts is %d, want 2 to %d", hosts, maxHosts)
	}
	switch w.Kind {
	case incastKind:
		w.Senders = hosts - 1
	case connectionsKind:
		w.Clients = hosts - 1
	case trainingKind:
		was := w.Trainers
		w.Servers = share(w.Servers)
		w.Trainers = hosts - w.Servers
		w.Jitter = Span(int64(w.Jitter) * int64(w.Trainers) / int64(was)) // as the time of a step
	case inferenceKind:
		was := w.Servers
		w.Servers = max(share(w.Servers)/w.Replicas*w.Replicas, min(w.Replicas, hosts-1))
		w.Rankers = hosts - w.Servers
		fewer := func(fanout int) int { return max(fanout*w.Servers/was, 1) }
		w.Fanout = fewer(w.Fanout)
		if s.Sweep != nil && s.Sweep.Of == "fanout" {
			c := Sweep{Of: s.Sweep.Of}
			for _, v := range s.Sweep.Values {
				c.Values = append(c.Values, fewer(v))
			}
			s.Sweep = &c
		}
		w.Think = Span(int64(w.Think) * int64(w.Servers) / int64(was)) // as the time of a fetch
	}
	t.Hosts = hosts
	if t.Kind == leafSpine {
		was := t.PerLeaf
		t.PerLeaf = min(was, max(hosts/3, 1))
		t.Spines = max(t.Spines*t.PerLeaf/was, 1)
	}
	return nil
}

// pairs is how many pairs of a sender and a receiver have the receiver on the same
// leaf.
func (s *Scenario) pairs() int {
	w, t := &s.Workload, &s.Topology
	switch w.Kind {
	case trainingKind:
		return max(w.Trainers*w.Servers*t.PerLeaf/t.Hosts, 1)
	case inferenceKind:
		return max(w.Rankers*w.Fanout*t.PerLeaf/t.Hosts, 1)
	}
	return 1
}

// headroom is that of the one switch; or of a leaf, or a spine if it has more.
func (s *Scenario) headroom() int {
	t := &s.Topology
	cfg := fabric.Config{NIC: fabric.NICConfig{MTU: mtuOf(s.NIC.MTU)}}
	host := cfg.HeadroomBytes(fabric.Link{Gbps: t.Gbps, Delay: t.Delay.time()}, true)
	if t.Kind == single {
		return t.Hosts * host
	}
	up := cfg.HeadroomBytes(fabric.Link{Gbps: t.UpGbps, Delay: t.UpDelay.time()}, false)
	return max(t.PerLeaf*host+t.Spines*up, (t.Hosts+t.PerLeaf-1)/t.PerLeaf*up)
}

// SetDuration gives the load another virtual time. The warm-up and the times of faults
// and flows keep their shares.
func (s *Scenario) SetDuration(d des.Time) error {
	c := *s
	share := func(v Span) Span { return Span(float64(v) / float64(s.Duration) * float64(d)) }
	c.Duration, c.Warmup = Span(d), share(s.Warmup)
	c.Faults = slices.Clone(s.Faults)
	for i := range c.Faults {
		c.Faults[i].At, c.Faults[i].Until = share(c.Faults[i].At), share(c.Faults[i].Until)
	}
	c.Workload.Flows = slices.Clone(s.Workload.Flows)
	for i := range c.Workload.Flows {
		f := &c.Workload.Flows[i]
		f.At, f.Until = share(f.At), share(f.Until)
	}
	if err := c.check(); err != nil {
		return err
	}
	*s = c
	return nil
}
