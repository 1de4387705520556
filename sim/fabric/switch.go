package fabric

import (
	"math/bits"

	"github.com/byteexpress/byteexpress/sim/des"
)

// Switch forwards frames.
type Switch struct {
	f      *Fabric
	id     int
	ports  []*port
	routes [][]*port // by switch: the next hops to its hosts that are as near
	salt   uint64    // of its choice among them
	pool   int       // bytes that the ports share
	used   int       // of it
	over   int       // bytes in headroom
	peak   int       // most bytes that it ever held
}

// PeakBytes is the most that the buffer ever held, headroom included.
func (s *Switch) PeakBytes() int { return s.peak }

// HeldBytes is what the buffer holds now.
func (s *Switch) HeldBytes() int { return s.used + s.over }

// forward takes a frame that arrived whole.
func (s *Switch) forward(in *port, fr *frame) {
	out := s.next(fr)
	if out == nil || !s.admit(in, out, fr) {
		if out == nil {
			out = in
		}
		out.stats.Drops++
		s.f.trace(out, "drop", fr)
		s.f.dropped++
		s.f.recycle(fr)
		return
	}
	s.f.trace(out, "in", fr)
	fr.at = s.f.k.Now() + s.f.cfg.Switch.Latency
	fr.in = in
	q := &out.queue[fr.class]
	q.push(fr)
	if fr.class != control {
		out.stats.PeakQueueBytes = max(out.stats.PeakQueueBytes, q.bytes)
	}
	s.peak = max(s.peak, s.used+s.over)
	out.start()
}

// next is the port to a frame's host, nil if there is no way. Of several, a flow
// always takes the same.
func (s *Switch) next(fr *frame) *port {
	edge := fr.to
	switch edge.sw {
	case s:
		return edge
	case nil: // it is joined to another host only
		return nil
	}
	hops := s.routes[edge.sw.id]
	switch len(hops) {
	case 0:
		return nil
	case 1:
		return hops[0]
	}
	hi, _ := bits.Mul64(des.Mix(fr.hash^s.salt), uint64(len(hops)))
	return hops[hi]
}

// admit charges the buffer with a frame, or finds no room for it.
func (s *Switch) admit(in, out *port, fr *frame) bool {
	cfg := &s.f.cfg.Switch
	n := fr.cells()
	if cfg.EgressBytes > 0 && out.queue[fr.class].bytes+int(fr.size) > cfg.EgressBytes {
		return false
	}
	switch {
	case fr.class == lossy: // a share of what is free
		if q := &out.queue[lossy]; s.used+n > s.pool || float64(q.bytes+int(fr.size)) > float64(cfg.LossyShare)*float64(s.pool-s.used) {
			return false
		}
		s.used += n
	case !cfg.PFC:
		if s.used+n > s.pool {
			return false
		}
		s.used += n
	case fr.class == control: // little, and not to be paused
		s.used += n
	case in.ingress+n <= s.threshold(in):
		s.used += n
		in.ingress += n
		s.checkPause(in)
	case in.over+n <= in.headroom:
		s.over += n
		in.over += n
		s.checkPause(in)
	default:
		return false
	}
	return true
}

// threshold is what the frames that came in by a port may hold: a share of what is
// free, so that the ports share the buffer without any taking all of it; or as much
// always.
func (s *Switch) threshold(in *port) int {
	free := max(s.pool-s.used, 0)
	if fixed := s.f.cfg.Switch.PauseBytes; fixed > 0 {
		return min(fixed, free)
	}
	return int(float64(free) * in.dynamic)
}

// release takes a frame that left off the accounts, those of headroom first.
func (s *Switch) release(fr *frame) {
	n, in := fr.cells(), fr.in
	if !s.f.cfg.Switch.PFC || fr.class != data {
		s.used -= n
		return
	}
	k := min(in.over, n)
	in.over -= k
	s.over -= k
	in.ingress -= n - k
	s.used -= n - k
	s.checkPause(in)
}

// checkPause tells the peer of a port to pause, or to go on.
func (s *Switch) checkPause(in *port) {
	t := s.threshold(in)
	switch {
	case !in.xoff && (in.over > 0 || in.ingress >= t):
		in.sendPause(true)
	case in.xoff && in.over == 0 && (in.ingress == 0 || in.ingress <= t-2*s.f.maxFrame):
		in.sendPause(false)
	}
}

// sendPause has a pause frame leave after the frame on the wire.
func (p *port) sendPause(off bool) {
	if p.xoff = off; off {
		p.pauseLater()
	}
	fr := p.pause
	if fr == nil {
		fr = p.f.newFrame()
		p.pause = fr
	}
	fr.kind, fr.class, fr.size, fr.off = pauseFrame, control, pauseBytes, off
	p.start()
}
