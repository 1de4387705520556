package msgtest

import (
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/counts"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/qp"
)

// reading is what a transport has counted.
type reading struct {
	node    map[string]int64
	device  map[string]int64
	engines []be.EngineStats
}

// since puts into a sample what was counted from before to r, of the node, its device
// and each of its engines.
func (r *reading) since(before *reading, s *report.Sample) {
	if r.node == nil {
		return
	}
	s.Counters = counts.Since(r.node, before.node)
	counts.Add(s.Counters, counts.Since(r.device, before.device))
	old := map[qp.Num]map[string]int64{}
	for i := range before.engines {
		e := &before.engines[i]
		old[e.QP] = counts.OfEngine(&e.Stats)
	}
	for i := range r.engines {
		e := &r.engines[i]
		s.Engines = append(s.Engines, report.Engine{
			Worker: e.Worker, Lane: e.Lane, QP: uint32(e.QP), Sockets: e.Sockets, Counters: counts.Since(counts.OfEngine(&e.Stats), old[e.QP]),
		})
	}
}
