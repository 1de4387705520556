package fabric

import (
	"slices"

	"github.com/pkg/errors"
)

// everywhere is a reroute of the whole network, not of one switch.
const everywhere = -1

// SetLinkDown cuts the links between two switches, both ways, or mends them. What
// is on the wire is lost. The two switches stop using a cut link after
// SwitchConfig.LocalRoute; after Route the whole network uses the shortest ways
// that there are, also those over links that were mended.
func (f *Fabric) SetLinkDown(a, b *Switch, down bool) error {
	found := false
	for _, p := range a.ports {
		if p.peer.sw == b {
			p.setLinkDown(down)
			found = true
		}
	}
	if !found {
		return errors.Errorf("switches %d and %d have no link", a.id, b.id)
	}
	f.rerouteSoon(a, b)
	return nil
}

// SetDown ends a switch with all its links, or brings it back. Its neighbours notice
// as with links. What it holds is lost.
func (s *Switch) SetDown(down bool) {
	around := []*Switch{s}
	for _, p := range s.ports {
		p.setLinkDown(down)
		if n := p.peer.sw; n != nil {
			around = append(around, n)
		}
	}
	s.f.rerouteSoon(around...)
}

// ID is the switch's number, from 0.
func (s *Switch) ID() int { return s.id }

// setLinkDown cuts or mends a link at one of its ports.
func (p *port) setLinkDown(down bool) {
	for _, e := range []*port{p, p.peer} {
		e.setDown(down)
	}
	if !down {
		p.start()
		p.peer.start()
	}
}

func (f *Fabric) rerouteSoon(near ...*Switch) {
	now := f.k.Now()
	for _, s := range near {
		f.k.At(now+f.cfg.Switch.LocalRoute, f.rerouteKind, int32(s.id), 0)
	}
	f.k.At(now+f.cfg.Switch.Route, f.rerouteKind, everywhere, 0)
}

// reroute has a switch forget its links that do not work, or the network find its
// ways anew.
func (f *Fabric) reroute(id int) {
	if id == everywhere {
		f.findWays()
		return
	}
	for i, hops := range f.switches[id].routes {
		f.switches[id].routes[i] = slices.DeleteFunc(slices.Clone(hops), func(p *port) bool { return p.down })
	}
}
