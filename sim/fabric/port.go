package fabric

import "github.com/byteexpress/byteexpress/sim/des"

// PortStats counts what one port did, in its egress direction but where said.
type PortStats struct {
	Frames, Bytes  uint64 // sent, without preamble and gap
	PeakQueueBytes int    // of the longest queue that is not for control
	Drops          uint64 // frames that found no room in the egress queue or the buffer
	Lost           uint64 // on the wire
	Marked         uint64 // ECN
	PausesSent     uint64 // XOFF, to the peer, each renewal too
	PausesReceived uint64
	Paused         des.Time // the data class may not send; a pause that lasts is not in it
}

// port is one end of a link: an egress queue with its wire to the peer, and the
// account of what came in.
type port struct {
	// What each frame needs comes first.
	f     *Fabric
	sw    *Switch // nil: a host's
	host  *Host
	peer  *port
	tx    *frame
	pause *frame   // goes out before everything
	pace  pace     // a byte takes
	delay des.Time // from the last bit on the wire until the peer has the frame

	wire     fifo
	kickAt   des.Time // when it looks again by itself
	id       int32
	gen      int32 // of the wire: moves on when what is on it is lost
	kinds    portKinds
	starting bool
	down     bool
	paused   bool // the data class
	xoff     bool // the peer was told to pause

	// Egress.
	queue [classes]fifo

	// Ingress of a switch with PFC.
	ingress  int // bytes of the buffer
	over     int // bytes of the headroom
	headroom int
	dynamic  float64 // of the free buffer that they may hold

	stats    PortStats
	ecn      [classes]ECN
	cfg      Link
	random   des.Stream
	ahead    int // bytes by which the data class is ahead of the lossy one
	since    des.Time
	pausedTo des.Time // with PauseQuanta
	renewAt  des.Time // with PauseQuanta
}

// portKinds are the kinds of a port's events.
type portKinds struct {
	sent, kick des.Kind // also of what is sent next
	arrive     des.Kind // at the peer
}

// start begins to send the next frame, if the wire is free and one may go.
func (p *port) start() {
	if p.tx != nil || p.starting {
		return
	}
	p.starting = true
	p.tx = p.take()
	p.starting = false
	if p.tx != nil {
		k := p.f.k
		k.At(k.Now()+p.pace.of(int(p.tx.size)+gapBytes), p.kinds.sent, p.id, 0)
	}
}

// take gives the next frame to send, nil if there is none now.
func (p *port) take() *frame {
	if fr := p.pause; fr != nil {
		p.pause = nil
		if fr.off {
			p.stats.PausesSent++
		}
		return fr
	}
	wake := des.Never
	c, ok := control, p.ready(control, &wake)
	if !ok {
		if !p.paused && p.host != nil && p.queue[data].head == nil {
			p.host.pull()
		}
		d, l := !p.paused && p.ready(data, &wake), p.ready(lossy, &wake)
		if c, ok = data, d || l; l {
			c = p.share(d)
		}
	}
	if ok {
		if c != control && p.sw != nil {
			p.mark(c)
		}
		return p.queue[c].pop()
	}
	p.kickBy(wake)
	return nil
}

// kickBy has the port look again by a time, if that is not Never.
func (p *port) kickBy(at des.Time) {
	if at < p.kickAt {
		p.kickAt = at
		p.f.k.At(at, p.kinds.kick, p.id, 0)
	}
}

// ready reports whether a class has a frame that may be sent now. Otherwise wake
// becomes the time of the first that may, if that is sooner.
func (p *port) ready(c class, wake *des.Time) bool {
	head := p.queue[c].head
	if head == nil {
		return false
	}
	if head.at > p.f.k.Now() {
		*wake = min(*wake, head.at)
		return false
	}
	return true
}

// share chooses between the data class and the lossy one, which has a frame: if
// both have, the link is theirs by halves.
func (p *port) share(both bool) class {
	if !both {
		p.ahead = 0
		return lossy
	}
	if p.ahead > 0 {
		p.ahead -= int(p.queue[lossy].head.size)
		return lossy
	}
	p.ahead += int(p.queue[data].head.size)
	return data
}

// mark decides about the ECN mark of the frame that leaves the queue of a class.
func (p *port) mark(c class) {
	e, q := &p.ecn[c], &p.queue[c]
	fr := q.head
	if e.KmaxBytes == 0 || q.bytes <= e.KminBytes || fr.marked || !fr.ecn {
		return
	}
	if q.bytes <= e.KmaxBytes {
		share := float64(q.bytes-e.KminBytes) / float64(e.KmaxBytes-e.KminBytes)
		if !p.random.Chance(float64(e.Pmax * share)) { // rounded here, on machines that fuse operations too
			return
		}
	}
	fr.marked = true
	p.stats.Marked++
}

// kick looks again, unless it is to look sooner.
func (p *port) kick() {
	if p.kickAt > p.f.k.Now() {
		return
	}
	p.kickAt = des.Never
	p.start()
}

// sent runs when the last bit of a frame is on the wire.
func (p *port) sent() {
	fr := p.tx
	p.tx = nil
	p.stats.Frames++
	p.stats.Bytes += uint64(fr.size)
	if p.sw != nil && fr.kind != pauseFrame {
		p.sw.release(fr)
	}
	if p.down || p.random.Chance(p.cfg.Loss) {
		p.lose(fr)
	} else {
		fr.at, fr.place = p.f.k.Now()+p.delay, p.f.k.Reserve()
		if p.wire.head == nil || p.f.naive {
			p.f.k.AtPlace(fr.at, fr.place, p.kinds.arrive, p.id, p.gen)
		}
		p.wire.push(fr)
	}
	p.start()
}

func (p *port) lose(fr *frame) {
	p.stats.Lost++
	if fr.kind != pauseFrame {
		p.f.lost++
	}
	p.f.trace(p, "lost", fr)
	p.f.recycle(fr)
}

// arrive takes the first frame off the wire.
func (p *port) arrive(gen int32) {
	if gen != p.gen {
		return
	}
	fr := p.wire.pop()
	if h := p.wire.head; h != nil && !p.f.naive {
		p.f.k.AtPlace(h.at, h.place, p.kinds.arrive, p.id, p.gen)
	}
	to := p.peer
	switch {
	case fr.kind == pauseFrame:
		p.f.trace(to, pauseName(fr), fr)
		to.setPaused(fr.off)
		p.f.recycle(fr)
	case to.sw != nil:
		to.sw.forward(to, fr)
	default:
		to.host.receive(fr)
	}
}

func pauseName(fr *frame) string {
	if fr.off {
		return "xoff"
	}
	return "xon"
}

// setPaused obeys the peer.
func (p *port) setPaused(off bool) {
	now := p.f.k.Now()
	if off {
		p.stats.PausesReceived++
		p.resumeLater()
	}
	switch {
	case off && !p.paused:
		p.paused, p.since = true, now
	case !off && p.paused:
		p.paused = false
		p.stats.Paused += now - p.since
		p.start()
	}
}

// setDown cuts or mends one direction.
func (p *port) setDown(down bool) {
	if p.down == down {
		return
	}
	p.down = down
	p.gen++
	for fr := p.wire.pop(); fr != nil; fr = p.wire.pop() {
		p.lose(fr)
	}
	p.setPaused(false) // a link that comes up knows of no pause
	p.xoff = false
}
