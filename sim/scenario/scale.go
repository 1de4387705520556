package scenario

import (
	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
)

// Scale makes the scenario one of so many hosts. The roles keep their shares, and the
// times between steps or fetches theirs of what a step or fetch takes. Of a
// leaf-spine network the uplinks keep theirs too, and so does the buffer, less its
// headroom, and with it the marking thresholds: it shrinks with the pairs of sender
// and receiver that share a leaf, which is what queues there grow with. So a small
// network is congested as the large one is.
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
	c := *s
	if err := c.resize(hosts); err != nil {
		return err
	}
	if c.Topology.Kind == "leafspine" {
		was, err := s.headroom()
		if err != nil {
			return err
		}
		now, err := c.headroom()
		if err != nil {
			return err
		}
		pool := s.Switch.BufferBytes - was
		shrink := func(v int) int { return int(int64(v) * int64(c.pairs()) / int64(max(s.pairs(), 1))) }
		c.Switch.BufferBytes = now + max(shrink(pool), 4*c.NIC.MTU)
		thresholds := func(v int) int { return int(int64(v) * int64(c.Switch.BufferBytes) / int64(s.Switch.BufferBytes)) }
		c.Switch.KminBytes, c.Switch.KmaxBytes = thresholds(s.Switch.KminBytes), thresholds(s.Switch.KmaxBytes)
	}
	*s = c
	return nil
}

// resize gives the roles and the switches of so many hosts.
func (s *Scenario) resize(hosts int) error {
	w, t := &s.Workload, &s.Topology
	share := func(n int) int { return min(max((n*hosts+s.needs()/2)/s.needs(), 1), hosts-1) }
	if hosts < 2 {
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
		w.Servers = share(w.Servers)
		w.Rankers = hosts - w.Servers
		w.Fanout = max(w.Fanout*w.Servers/was, 1)
		w.Think = Span(int64(w.Think) * int64(w.Servers) / int64(was)) // as the time of a fetch
	}
	t.Hosts = hosts
	if t.Kind == "leafspine" {
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

// headroom is that of the switch that has the most.
func (s *Scenario) headroom() (most int, err error) {
	c := *s
	c.Switch.BufferBytes, c.Topology.Hosts = 1<<40, min(s.Topology.Hosts, 3*s.Topology.PerLeaf)
	f, err := c.buildFabric(&Variant{})
	if err != nil {
		return 0, err
	}
	for i := range f.Switches() {
		most = max(most, f.Switch(i).HeadroomBytes())
	}
	return most, nil
}

// SetDuration gives the load another virtual time. The warm-up keeps its share.
func (s *Scenario) SetDuration(d des.Time) error {
	c := *s
	c.Duration = Span(d)
	c.Warmup = Span(float64(s.Warmup) / float64(s.Duration) * float64(d))
	if err := c.check(); err != nil {
		return err
	}
	*s = c
	return nil
}
