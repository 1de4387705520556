package fabric

import "github.com/pkg/errors"

// Single makes a fabric of hosts around one switch.
func Single(cfg Config, hosts int, l Link) (*Fabric, error) {
	f := New(cfg)
	s := f.AddSwitch()
	for range hosts {
		if err := f.LinkHost(f.AddHost(), s, l); err != nil {
			return nil, err
		}
	}
	return f, f.Build()
}

// Pair makes a fabric of two hosts joined directly.
func Pair(cfg Config, l Link) (*Fabric, error) {
	f := New(cfg)
	if err := f.LinkHosts(f.AddHost(), f.AddHost(), l); err != nil {
		return nil, err
	}
	return f, f.Build()
}

// LeafSpine makes a fabric of leaf switches with so many hosts each (the last may
// have fewer), every leaf joined to every spine.
func LeafSpine(cfg Config, hosts, perLeaf, spines int, host, up Link) (*Fabric, error) {
	if perLeaf < 1 || spines < 1 {
		return nil, errors.Errorf("leaf-spine: %d hosts a leaf and %d spines, want 1 or more", perLeaf, spines)
	}
	f := New(cfg)
	var tops []*Switch
	for range spines {
		tops = append(tops, f.AddSwitch())
	}
	var leaf *Switch
	for i := range hosts {
		if i%perLeaf == 0 {
			leaf = f.AddSwitch()
			for _, t := range tops {
				if err := f.LinkSwitches(leaf, t, up); err != nil {
					return nil, err
				}
			}
		}
		if err := f.LinkHost(f.AddHost(), leaf, host); err != nil {
			return nil, err
		}
	}
	return f, f.Build()
}

// FatTree makes a fabric of switches of k ports, which is even (Al-Fares, Loukissas,
// Vahdat, "A Scalable, Commodity Data Center Network Architecture", SIGCOMM 2008): k
// pods of k/2 edge switches with k/2 hosts each, k/2 switches above those, and k^2/4 at
// the core; all links alike. The core comes first, then the pods, upper switches first.
func FatTree(cfg Config, k int, l Link) (*Fabric, error) {
	if k < 2 || k > maxFatTree || k%2 != 0 {
		return nil, errors.Errorf("fat tree: k is %d, want an even number of 2 to %d", k, maxFatTree)
	}
	f := New(cfg)
	half := k / 2
	switches := func(n int) (list []*Switch) {
		for range n {
			list = append(list, f.AddSwitch())
		}
		return list
	}
	core := switches(half * half)
	for range k {
		upper := switches(half)
		for i, u := range upper {
			for j := range half {
				if err := f.LinkSwitches(u, core[i*half+j], l); err != nil {
					return nil, err
				}
			}
		}
		for _, edge := range switches(half) {
			for _, u := range upper {
				if err := f.LinkSwitches(edge, u, l); err != nil {
					return nil, err
				}
			}
			for range half {
				if err := f.LinkHost(f.AddHost(), edge, l); err != nil {
					return nil, err
				}
			}
		}
	}
	return f, f.Build()
}

// maxFatTree bounds a fat tree to 27,648 hosts.
const maxFatTree = 48

// Trunk is a link between two switches, by their numbers.
type Trunk struct {
	A, B int
	Link Link
}

// Place is the switch of a host, and its link.
type Place struct {
	Switch int
	Link   Link
}

// Graph makes a fabric of so many switches, the links between them, and the hosts:
// whatever the other builders do not have.
func Graph(cfg Config, switches int, trunks []Trunk, hosts []Place) (*Fabric, error) {
	f := New(cfg)
	for range switches {
		f.AddSwitch()
	}
	known := func(id int) bool { return id >= 0 && id < switches }
	for i, t := range trunks {
		if !known(t.A) || !known(t.B) {
			return nil, errors.Errorf("graph: trunk %d joins switches %d and %d, of %d", i, t.A, t.B, switches)
		}
		if err := f.LinkSwitches(f.switches[t.A], f.switches[t.B], t.Link); err != nil {
			return nil, errors.Wrapf(err, "graph: trunk %d", i)
		}
	}
	for i, p := range hosts {
		if !known(p.Switch) {
			return nil, errors.Errorf("graph: host %d is at switch %d, of %d", i, p.Switch, switches)
		}
		if err := f.LinkHost(f.AddHost(), f.switches[p.Switch], p.Link); err != nil {
			return nil, errors.Wrapf(err, "graph: host %d", i)
		}
	}
	return f, f.Build()
}
