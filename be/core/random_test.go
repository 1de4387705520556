package core

import (
	"math/rand/v2"
	"testing"
)

// newRandomWorld is a world of two sides of this kind, with depths and backlogs that are
// drawn, and often lines of their own for large messages.
func newRandomWorld(t *testing.T, r *rand.Rand, seed uint64, cfg *Config, backlog int) *world {
	if r.IntN(2) == 0 {
		all := NewInbound(4096+r.IntN(16384), r.IntN(2)*cfg.Fragment, seed, nil)
		cfg.Arrivals, cfg.PeerExpect = NewArrivals(all, func(Handler) {}), all.Most()
	}
	cfgs := [2]Config{*cfg, *cfg}
	for i := range cfgs {
		own, peer := &cfgs[i], &cfgs[1-i]
		own.SendDepth, own.RecvDepth, own.Backlog = 2+r.IntN(31), 4+r.IntN(13), 1+r.IntN(backlog)
		peer.PeerDepth, peer.PeerBacklog = own.RecvDepth, own.Backlog
	}
	return newWorldIn(t, newFakeMemory(arenaBytes), seed, cfgs)
}

// end is one end of a socket, and what is sent there.
type end struct {
	s    *side
	k    *Socket
	f    flow
	peer *end
}

// openEnds opens n sockets from both sides by turns, of kinds that are drawn. It gives both
// ends of each.
func (w *world) openEnds(r *rand.Rand, n int) (ends []*end) {
	for i := range n {
		way := (*Engine).Open
		if r.IntN(2) == 0 {
			way = (*Engine).OpenUnordered
		}
		own, peer := w.openBy(i%2, way)
		own.e.SetGet(own, r.IntN(2) == 0)
		peer.e.SetGet(peer, r.IntN(2) == 0)
		a, b := &end{s: w.sides[i%2], k: own}, &end{s: w.sides[1-i%2], k: peer}
		a.peer, b.peer = b, a
		ends = append(ends, a, b)
	}
	return ends
}

// none checks that no large message is in the lines, which may be nil, or counted there.
func (a *Arrivals) none(t *testing.T) {
	t.Helper()
	if a != nil && (a.all.used.Load() != 0 || a.all.whole.Load() != 0 || a.all.peers.Load() != 0 || a.own != 0 || a.turns.n > 0 || a.invited.head != nil) {
		t.Errorf("at the end %d bytes of messages of %d are expected, of %d peers; one waits: %v", a.all.used.Load(), a.all.whole.Load(), a.all.peers.Load(), a.turns.n > 0)
	}
}
