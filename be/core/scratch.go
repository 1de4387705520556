package core

import (
	"math"

	"github.com/byteexpress/byteexpress/qp"
)

// Scratch is what engines of one goroutine share, so that what one has just used is in
// the cache when the next needs it: slots of requests, requests on their way into a post,
// and what messages are kept in. An engine that has none of them waiting holds none.
type Scratch struct {
	slots
	sends batch
	width int // segments of each
	recvs []qp.RecvWR
	out   *outgoing // free ones
	in    *incoming

	// Told is set whenever an application is handed a message, told what became of one, or
	// of a socket, or that a buffer that it published was written to: a goroutine of it may
	// wait for a core then.
	Told bool
}

// NewScratch is for engines of these depths, and requests of width segments, at least two.
func NewScratch(sendDepth, recvDepth, width int, mem Memory) *Scratch {
	return &Scratch{
		slots: slots{least: min(sendDepth, leastSlots), mem: mem},
		sends: *newBatch(sendDepth, width), width: width, recvs: make([]qp.RecvWR, 0, recvDepth),
	}
}

// fits reports whether an engine of this configuration may use it. Any goroutine: it looks
// at nothing that changes.
func (s *Scratch) fits(cfg *Config, q qp.QP) bool {
	return s != nil && s.sends.depth == cfg.SendDepth && s.width <= q.Caps().SendSGE && cap(s.recvs) >= cfg.RecvDepth
}

// newBatch makes room for n requests of width segments.
func newBatch(n, width int) *batch {
	wrs := make([]qp.SendWR, n)
	sges := make([]qp.SGE, n*width)
	for i := range wrs {
		wrs[i].SGEs = sges[i*width : (i+1)*width : (i+1)*width]
	}
	return &batch{wrs: wrs[:0], depth: n, every: math.MaxInt}
}
