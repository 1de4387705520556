package scenario

import (
	"cmp"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// Kinds of topologies.
const (
	single      = "single"
	leafSpine   = "leafspine"
	pairOfHosts = "pair"
	dumbbell    = "dumbbell"
	fatTree     = "fattree"
	graph       = "graph"
)

// topologies are the kinds of them.
var topologies = []string{single, leafSpine, pairOfHosts, dumbbell, fatTree, graph}

// fill takes the defaults, for a workload that needs so many hosts.
func (t *Topology) fill(needs int) {
	def := func(v *int, d int) { *v = cmp.Or(*v, d) }
	def(&t.Gbps, 100)
	switch t.Kind {
	case leafSpine:
		def(&t.PerLeaf, 32)
		def(&t.Spines, 8)
	case fatTree:
		def(&t.Hosts, min(max(t.K, 0), maxHosts)*t.K*t.K/4)
	case graph:
		def(&t.Hosts, len(t.Places))
	}
	def(&t.Hosts, needs)
	switch t.Kind {
	case dumbbell:
		def(&t.Left, (t.Hosts+1)/2)
		def(&t.UpGbps, t.Gbps)
	case graph:
		def(&t.UpGbps, t.Gbps)
	case leafSpine:
		def(&t.UpGbps, 4*t.Gbps)
	}
	t.Delay = cmp.Or(t.Delay, Span(300*des.Nanosecond))
	if t.trunked() {
		t.UpDelay = cmp.Or(t.UpDelay, Span(des.Microsecond))
	}
	for i := range t.Trunks {
		k := &t.Trunks[i]
		def(&k.Gbps, t.UpGbps)
		k.Delay = cmp.Or(k.Delay, t.UpDelay)
	}
	for i := range t.Links {
		l := &t.Links[i]
		def(&l.Gbps, t.Gbps)
		l.Delay = cmp.Or(l.Delay, t.Delay)
	}
}

// trunked reports whether links between switches can be others than those of hosts.
func (t *Topology) trunked() bool {
	return t.Kind == leafSpine || t.Kind == dumbbell || t.Kind == graph
}

// checkShape refuses what no network is like.
func (t *Topology) checkShape() error {
	if err := checkLimits([]limit{
		{"topology.hosts", t.Hosts, 2, maxHosts, "leave it out: it is what the workload needs"},
		{"topology.up_gbps", t.UpGbps, 0, 8000, "it is the rate of links between switches"},
	}); err != nil {
		return err
	}
	switch t.Kind {
	case leafSpine:
		return checkLimits([]limit{
			{"topology.per_leaf", t.PerLeaf, 1, 1024, "it is how many hosts a leaf switch has"},
			{"topology.spines", t.Spines, 1, 256, "it is how many spine switches there are"},
		})
	case pairOfHosts:
		if t.Hosts != 2 {
			return errors.Errorf("topology.hosts is %d, want 2 for a pair: take kind \"single\" for more", t.Hosts)
		}
	case fatTree:
		if t.K < 2 || t.K > 40 || t.K%2 != 0 || t.Hosts != t.K*t.K*t.K/4 {
			return errors.Errorf("topology.k is %d with %d hosts, want an even number of 2 to 40, and no topology.hosts: it is the ports of a switch, of which k^3/4 hosts follow", t.K, t.Hosts)
		}
	case dumbbell:
		if err := checkLimits([]limit{{"topology.left", t.Left, 1, t.Hosts - 1, "it is how many hosts the first switch has"}}); err != nil {
			return err
		}
	case graph:
		if err := t.checkGraph(); err != nil {
			return err
		}
	}
	return t.checkLinks()
}

func (t *Topology) checkLinks() error {
	seen := map[int]bool{}
	for i := range t.Links {
		l := &t.Links[i]
		if err := checkLimits([]limit{
			{"topology.links.host", l.Host, 0, t.Hosts - 1, "it is a host's number"},
			{"topology.links.gbps", l.Gbps, 1, 800, "it is the rate of a host's link"},
		}); err != nil {
			return err
		}
		if seen[l.Host] {
			return errors.Errorf("topology.links has host %d twice: leave one of them out", l.Host)
		}
		seen[l.Host] = true
		if err := checkDelay("topology.links.delay", l.Delay); err != nil {
			return err
		}
	}
	return nil
}

// gbpsOf is the rate of a host's link, where those that Links does not name have another
// than the topology's if that is not 0.
func (t *Topology) gbpsOf(host, others int) int {
	for i := range t.Links {
		if t.Links[i].Host == host {
			return t.Links[i].Gbps
		}
	}
	return cmp.Or(others, t.Gbps)
}

func checkDelay(name string, d Span) error {
	if d.time() < 0 || d.time() > des.Second {
		return errors.Errorf("%s is %v, want 0s to 1s: a meter of cable is 5ns", name, d)
	}
	return nil
}

// Bounds of a graph.
const (
	maxSwitches = 1000
	maxTrunks   = 10_000
)

// checkGraph sees to it that there is a way between any two hosts.
func (t *Topology) checkGraph() error {
	if len(t.Places) != t.Hosts {
		return errors.Errorf("topology.places has %d hosts and topology.hosts is %d: give the switch of each host, and leave topology.hosts out", len(t.Places), t.Hosts)
	}
	for _, p := range t.Places {
		if err := checkLimits([]limit{{"topology.places", p, 0, maxSwitches - 1, "it is a switch's number"}}); err != nil {
			return err
		}
	}
	if len(t.Trunks) > maxTrunks {
		return errors.Errorf("topology.trunks has %d links, want %d at most", len(t.Trunks), maxTrunks)
	}
	seen := map[[2]int]bool{}
	known := make([]int, t.switches()) // the part of the graph that a switch is in
	for i := range known {
		known[i] = i
	}
	for i := range t.Trunks {
		k := &t.Trunks[i]
		if err := checkLimits([]limit{
			{"topology.trunks.a", k.A, 0, maxSwitches - 1, "it is a switch's number"},
			{"topology.trunks.b", k.B, 0, maxSwitches - 1, "it is a switch's number"},
			{"topology.trunks.gbps", k.Gbps, 1, 8000, "it is the rate of a link between switches"},
		}); err != nil {
			return err
		}
		if k.A == k.B {
			return errors.Errorf("topology.trunks joins switch %d to itself, want two: give a and b", k.A)
		}
		ends := [2]int{min(k.A, k.B), max(k.A, k.B)}
		if seen[ends] {
			return errors.Errorf("topology.trunks joins switches %d and %d twice: leave one of them out, and give the other the rate of both", ends[0], ends[1])
		}
		seen[ends] = true
		if err := checkDelay("topology.trunks.delay", k.Delay); err != nil {
			return err
		}
		was, now := known[k.A], known[k.B]
		for j := range known {
			if known[j] == was {
				known[j] = now
			}
		}
	}
	for _, p := range t.Places {
		if known[p] != known[t.Places[0]] {
			return errors.Errorf("topology.trunks has no way from switch %d to switch %d, which both have hosts: add a trunk", t.Places[0], p)
		}
	}
	return nil
}

// switches is how many the topology has. Of a leaf-spine network spines come first.
func (t *Topology) switches() int {
	switch t.Kind {
	case single:
		return 1
	case leafSpine:
		return t.Spines + (t.Hosts+t.PerLeaf-1)/t.PerLeaf
	case dumbbell:
		return 2
	case fatTree:
		return 5 * t.K * t.K / 4
	case graph:
		n := 0
		for _, p := range t.Places {
			n = max(n, p+1)
		}
		for i := range t.Trunks {
			n = max(n, min(t.Trunks[i].A, maxSwitches)+1, min(t.Trunks[i].B, maxSwitches)+1)
		}
		return n
	}
	return 0
}

// build makes the network, whose hosts have links of another rate if that is not 0.
func (t *Topology) build(cfg fabric.Config, gbps int) (*fabric.Fabric, error) {
	down := fabric.Link{Gbps: cmp.Or(gbps, t.Gbps), Delay: t.Delay.time()}
	up := fabric.Link{Gbps: t.UpGbps, Delay: t.UpDelay.time()}
	switch t.Kind {
	case pairOfHosts:
		return fabric.Pair(cfg, down)
	case leafSpine:
		return fabric.LeafSpine(cfg, t.Hosts, t.PerLeaf, t.Spines, down, up)
	case fatTree:
		return fabric.FatTree(cfg, t.K, down)
	}
	places := make([]fabric.Place, t.Hosts)
	for i := range places {
		places[i].Link = down
		switch {
		case t.Kind == graph:
			places[i].Switch = t.Places[i]
		case t.Kind == dumbbell && i >= t.Left:
			places[i].Switch = 1
		}
	}
	for _, l := range t.Links {
		places[l.Host].Link = fabric.Link{Gbps: l.Gbps, Delay: l.Delay.time()}
	}
	var trunks []fabric.Trunk
	if t.Kind == dumbbell {
		trunks = []fabric.Trunk{{A: 0, B: 1, Link: up}}
	}
	for _, k := range t.Trunks {
		trunks = append(trunks, fabric.Trunk{A: k.A, B: k.B, Link: fabric.Link{Gbps: k.Gbps, Delay: k.Delay.time()}})
	}
	return fabric.Graph(cfg, t.switches(), trunks, places)
}
