package be

import (
	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/qp"
)

// Stats counts what a node did. See core.Stats for the engines' part.
type Stats struct {
	core.Stats
	Engines     int            // up or draining
	Sockets     int            // on them
	Strays      uint64         // completions of queue pairs that were gone
	OwnerErrors uint64         // see OwnerError
	BadClients  uint64         // bootstraps that a listener gave up
	Memory      bemalloc.Stats // of all key domains
	Registered  Registered
}

// add adds an engine's counts.
func (s *Stats) add(e *core.Engine) {
	st := e.Stats()
	s.Stats.Add(&st)
	s.Engines++
	s.Sockets += e.Sockets()
}

// Stats gives the counts so far.
func (n *Node) Stats() Stats {
	s := Stats{Strays: n.strays.Load(), BadClients: n.badClients.Load(), OwnerErrors: n.mem.owners.count()}
	for _, w := range n.workers {
		if !w.call(func() { w.gather(&s) }) {
			<-w.done
			w.gather(&s)
		}
	}
	n.mem.stats(&s)
	return s
}

// gather adds the worker's counts. It is the worker's, or anybody's after it ended.
func (w *worker) gather(s *Stats) {
	s.Stats.Add(&w.ended)
	for _, c := range w.conns {
		if c != nil {
			s.add(c.e)
		}
	}
}

// EngineStats counts what one engine did since it came up.
type EngineStats struct {
	core.Stats
	Peer    string // bootstrap address of the other node
	Worker  int    // of ours that drives it, counted from 0
	Lane    int    // the peer's worker; -1 for a peer that does not know of pairs
	QP      qp.Num // number of the queue pair
	Sockets int
}

// EngineStats gives the counts of each engine that is up or draining. What engines
// that ended have counted is in Stats only.
func (n *Node) EngineStats() []EngineStats {
	var all []EngineStats
	for i, w := range n.workers {
		w.call(func() { // else it has ended, and its engines before it
			for _, c := range w.conns {
				if c != nil {
					all = append(all, EngineStats{c.e.Stats(), c.addr, i, c.theirs, c.e.QP().Num(), c.e.Sockets()})
				}
			}
		})
	}
	return all
}
