package core

import (
	"math/rand/v2"
	"time"
)

// Path is a transport to a replica, and a bit of a mask of them.
type Path uint8

// Paths.
const (
	RDMA Path = 1 << iota
	TCP

	NoPath Path = 0
)

// String names it.
func (p Path) String() string {
	switch p {
	case RDMA:
		return "rdma"
	case TCP:
		return "tcp"
	}
	return "none"
}

// Link decides over which transport a replica is reached. It keeps RDMA where that
// works. While it does not, calls go over TCP, and RDMA is tried beside it: only when
// a connection has lived there for the settle time, calls return to it. So a link that
// flaps stays on TCP. It belongs to one goroutine at a time.
type Link struct {
	cfg   *Config
	have  Path // transports there are
	rng   *rand.Rand
	rdma  leg
	tcp   leg
	use   Path // where calls go
	stats LinkStats

	fault     Reason        // of RDMA, last; NoReason: RDMA was sound so far
	counted   bool          // the present fault has led to TCP, and was counted
	usedSince time.Duration // when use became what it is
	settle    time.Duration // that RDMA must live before it is used again
}

// leg is one transport's connection.
type leg struct {
	state   legState
	since   time.Duration // of the state
	retryAt time.Duration // idle: not before; -1: as soon as wanted
	fails   int           // set-ups that failed in a row
	heard   time.Duration // up: something came last
	pinged  time.Duration // up: the ping that waits for an answer; 0: none
}

type legState uint8

const (
	idle legState = iota
	dialing
	up
)

// LinkStats counts what became of a link.
type LinkStats struct {
	Fallbacks [NumReasons]uint64 // calls moved to TCP, by the cause
	Failures  [NumReasons]uint64 // connections and set-ups of RDMA that failed
	Returns   uint64             // calls moved back to RDMA
	TCPFaults uint64             // connections and set-ups of TCP that failed
}

// LinkDo says what is to be done now for a Link: masks of paths.
type LinkDo struct {
	Dial  Path // set up; answer with DialEnded
	Ping  Path // ask whether it lives; answer with Heard
	Drop  Path // end the connection, or the set-up, at once
	Spare Path // end the connection when its calls have ended
}

// NewLink makes a link by the transports that there are, a mask; cfg has its defaults.
func NewLink(cfg *Config, have Path, rng *rand.Rand) *Link {
	l := &Link{cfg: cfg, have: have, rng: rng, settle: cfg.Settle}
	l.rdma.retryAt, l.tcp.retryAt = -1, -1
	return l
}

// Use is the transport for calls, NoPath while there is no connection.
func (l *Link) Use() Path { return l.use }

// Fault is why RDMA is not used; NoReason while it is sound.
func (l *Link) Fault() Reason { return l.fault }

// Stats gives the counts so far.
func (l *Link) Stats() *LinkStats { return &l.stats }

// NoPeerRDMA says that the replica has TCP only, which counts as a fallback.
func (l *Link) NoPeerRDMA() {
	l.have &^= RDMA
	l.fault = NoPeer
}

// DialEnded tells how a set-up ended: with NoReason the connection is there.
func (l *Link) DialEnded(now time.Duration, p Path, reason Reason) {
	g := l.leg(p)
	if g.state != dialing {
		return
	}
	if reason != NoReason {
		l.failed(now, p, reason)
		return
	}
	*g = leg{state: up, since: now, heard: now, fails: g.fails}
}

// Lost tells that a connection ended.
func (l *Link) Lost(now time.Duration, p Path, reason Reason) {
	if l.leg(p).state == up {
		l.failed(now, p, reason)
	}
}

// Heard tells that something came over a connection, at a time that may be past.
func (l *Link) Heard(at time.Duration, p Path) {
	g := l.leg(p)
	if g.state != up || at < g.heard {
		return
	}
	g.heard = at
	if at >= g.pinged {
		g.pinged = 0
	}
}

// Busy tells that a ping still waits behind other messages, which leave: that is no
// silence of the peer.
func (l *Link) Busy(now time.Duration, p Path) {
	if g := l.leg(p); g.state == up && g.pinged != 0 {
		g.pinged = now
	}
}

func (l *Link) leg(p Path) *leg {
	if p == RDMA {
		return &l.rdma
	}
	return &l.tcp
}

// failed takes a leg down and says when it is tried again.
func (l *Link) failed(now time.Duration, p Path, reason Reason) {
	g := l.leg(p)
	if g.state == up && now-g.since >= l.cfg.RedialMax { // it was sound
		g.fails = 0
	}
	pause := doubled(l.cfg.RedialBase, l.cfg.RedialMax, g.fails)
	if p == RDMA && l.use == TCP { // no hurry, but a fault that heals is to be seen in time
		pause = min(max(pause, l.cfg.Settle/4), l.cfg.Settle/2)
	}
	*g = leg{since: now, retryAt: now + pause/2 + time.Duration(l.rng.Float64()*float64(pause/2)), fails: g.fails + 1}
	if p == TCP {
		l.stats.TCPFaults++
	} else {
		l.stats.Failures[reason]++
		l.rdmaFailed(now, reason)
	}
	if l.use == p {
		l.use = NoPath
	}
}

// rdmaFailed notes the fault; if calls had just returned, they wait longer next time.
func (l *Link) rdmaFailed(now time.Duration, reason Reason) {
	if reason == PeerClosed && l.fault == NoReason {
		return // that is not RDMA's fault
	}
	if l.use == RDMA || l.fault == NoReason {
		l.counted = false
		switch {
		case l.stats.Returns > 0 && l.use == RDMA && now-l.usedSince < 4*l.settle:
			l.settle = min(2*l.settle, l.cfg.SettleMax)
		default:
			l.settle = l.cfg.Settle
		}
	}
	l.fault = reason
}

// Step does what the clock and the events so far have come to.
func (l *Link) Step(now time.Duration) (do LinkDo) {
	l.watch(now, RDMA, &do)
	l.watch(now, TCP, &do)
	l.choose(now, &do)
	l.dial(now, &do)
	return do
}

// choose decides where calls go.
func (l *Link) choose(now time.Duration, do *LinkDo) {
	if l.rdma.state == up && l.use != RDMA && now >= l.sound() {
		if l.fault != NoReason && l.counted {
			l.stats.Returns++
		}
		l.fault, l.counted = NoReason, false
		l.use, l.usedSince = RDMA, now
	}
	if l.use == NoPath && l.tcp.state == up {
		if l.fault == NoReason && l.rdma.state == dialing {
			l.fault = Slow
		}
		if l.fault != NoReason && !l.counted {
			l.counted = true
			l.stats.Fallbacks[l.fault]++
		}
		l.use, l.usedSince = TCP, now
	}
	if l.use == RDMA {
		switch l.tcp.state {
		case up:
			do.Spare |= TCP
			l.tcp = leg{since: now, retryAt: -1}
		case dialing:
			do.Drop |= TCP
			l.tcp = leg{since: now, retryAt: -1}
		}
	}
}

// sound is when the RDMA connection that is up may be used: at once if RDMA was sound
// before or is all there is, else after the settle time.
func (l *Link) sound() time.Duration {
	slow := l.fault == Slow && l.rdma.fails == 0
	if l.fault == NoReason || slow || l.use == NoPath && (l.have&TCP == 0 || l.tcp.fails > 0 && l.tcp.state != up) {
		return l.rdma.since
	}
	return l.rdma.since + l.settle
}

// dial starts the set-ups that are due.
func (l *Link) dial(now time.Duration, do *LinkDo) {
	if l.have&RDMA != 0 && l.rdma.state == idle && now >= l.rdma.retryAt {
		l.rdma.state, l.rdma.since = dialing, now
		do.Dial |= RDMA
	}
	if l.wantTCP(now) && l.tcp.state == idle && now >= l.tcp.retryAt {
		l.tcp.state, l.tcp.since = dialing, now
		do.Dial |= TCP
	}
}

// wantTCP tells whether a connection over TCP is needed: nothing else is there, and
// RDMA does not come up, or not soon.
func (l *Link) wantTCP(now time.Duration) bool {
	if l.have&TCP == 0 || l.use == RDMA {
		return false
	}
	return l.have&RDMA == 0 || l.fault != NoReason || l.rdma.state == dialing && now >= l.rdma.since+l.cfg.FallbackDelay
}

// watch asks a connection that is silent whether it lives, and gives it up when it
// does not say so.
func (l *Link) watch(now time.Duration, p Path, do *LinkDo) {
	g := l.leg(p)
	switch {
	case g.state != up:
	case g.pinged != 0 && now >= g.pinged+l.cfg.PingTimeout:
		do.Drop |= p
		l.failed(now, p, Silent)
	case g.pinged == 0 && now >= g.heard+l.cfg.PingInterval:
		g.pinged = now
		do.Ping |= p
	}
}

// Next is when Step wants to be called.
func (l *Link) Next() time.Duration {
	next := time.Duration(1<<63 - 1)
	at := func(t time.Duration) { next = min(next, max(t, 0)) }
	for _, p := range [...]Path{RDMA, TCP} {
		switch g := l.leg(p); {
		case g.state != up:
		case g.pinged != 0:
			at(g.pinged + l.cfg.PingTimeout)
		default:
			at(g.heard + l.cfg.PingInterval)
		}
	}
	if l.rdma.state == up && l.use != RDMA {
		at(l.sound())
	}
	if l.rdma.state == idle && l.have&RDMA != 0 {
		at(l.rdma.retryAt)
	}
	if l.tcp.state == idle && l.have&TCP != 0 && l.use != RDMA {
		switch {
		case l.have&RDMA == 0 || l.fault != NoReason:
			at(l.tcp.retryAt)
		case l.rdma.state == dialing:
			at(max(l.rdma.since+l.cfg.FallbackDelay, l.tcp.retryAt))
		}
	}
	return next
}
