package tcp

import (
	"cmp"

	"github.com/byteexpress/byteexpress/sim/des"
)

// maxRTO bounds the backoff (RFC 6298, 2.5).
const maxRTO = 60 * des.Second

// clock is the timers of a sender and its measure of the round trip (RFC 6298).
type clock struct {
	srtt, rttvar des.Time // srtt 0: none yet
	handshake    des.Time // what a handshake would have measured
	backoff      uint     // timeouts in a row
	sentAt       des.Time // when data was sent last
	rtoAt        des.Time
	probeAt      des.Time
	probed       bool // since the last progress
}

func (c *Conn) startClock() { c.rtoAt, c.probeAt = des.Never, des.Never }

// sample takes a measured round trip.
func (c *clock) sample(rtt des.Time) {
	if c.srtt == 0 {
		c.srtt, c.rttvar = rtt, rtt/2
		return
	}
	d := c.srtt - rtt
	c.rttvar += (max(d, -d) - c.rttvar) / 4
	c.srtt += (rtt - c.srtt) / 8
}

// rto is the time until a retransmission, without the backoff. Before the first
// measure it is that of the handshake.
func (c *Conn) rto() des.Time {
	if c.srtt == 0 {
		return max(3*c.handshake, c.n.cfg.MinRTO)
	}
	return max(c.srtt+4*c.rttvar, c.n.cfg.MinRTO)
}

// RTT is the smoothed round trip, 0 if there was none yet.
func (c *Conn) RTT() des.Time { return c.srtt }

// progressed notes that something was acknowledged.
func (c *Conn) progressed() {
	c.backoff, c.probed = 0, false
	c.rtoAt, c.probeAt = des.Never, des.Never
}

// setTimers begins to wait for an acknowledgement, or for the window to open.
func (c *Conn) setTimers(now des.Time) {
	if c.next == c.una && c.next == c.written {
		c.rtoAt, c.probeAt = des.Never, des.Never
		return
	}
	if c.rtoAt == des.Never {
		c.rtoAt = now + min(c.rto()<<min(c.backoff, 20), maxRTO)
	}
	if c.probeAt == des.Never && !c.probed && c.state == open {
		c.probeAt = now + max(probeFactor*cmp.Or(c.srtt, c.handshake), c.n.cfg.MinProbe)
	}
	c.arm(min(c.rtoAt, c.probeAt))
}

// arm sees to it that the timer runs at a time. An earlier event costs one look.
func (c *Conn) arm(at des.Time) {
	if at < c.timerAt {
		c.timerAt = at
		c.n.k.At(at, c.n.timerKind, c.id, 0)
	}
}

// timer looks at all that may be due.
func (c *Conn) timer() {
	now := c.n.k.Now()
	if now < c.timerAt {
		return // an earlier one that was left over
	}
	c.timerAt = des.Never
	if c.ackBy <= now {
		c.acknowledge(true)
	}
	switch {
	case c.rtoAt <= now:
		c.timeout(now)
	case c.probeAt <= now:
		c.probe(now)
	}
	c.arm(min(c.rtoAt, c.probeAt, c.ackBy))
}

// probe sends the next segment, or else the last again, so that an acknowledgement
// tells of what is lost (RFC 8985, 7).
func (c *Conn) probe(now des.Time) {
	c.probed, c.probeAt, c.rtoAt = true, des.Never, des.Never
	if c.first == len(c.out) {
		c.setTimers(now)
		return
	}
	c.n.stats.Probes++
	if f := &c.out[len(c.out)-1]; !f.sacked {
		if f.lost {
			f.lost = false
			c.lost -= int(f.n)
		}
		f.again, f.at = true, now
		c.emit(f.seq, int(f.n), now)
	}
	c.setTimers(now)
}

// timeout takes all that did not arrive for lost, and begins with one segment.
func (c *Conn) timeout(now des.Time) {
	c.rtoAt, c.probeAt = des.Never, des.Never
	if c.first == len(c.out) { // the peer's window is closed: ask
		if c.next < c.written {
			c.emit(c.next, 1, now)
			c.out = append(c.out, flight{seq: c.next, n: 1, at: now})
			c.next++
		}
		c.backoff++
		c.setTimers(now)
		return
	}
	c.n.stats.Timeouts++
	for i := c.first; i < len(c.out); i++ {
		if f := &c.out[i]; !f.sacked && !f.lost {
			f.lost = true
			c.lost += int(f.n)
		}
	}
	c.timedOut()
	c.backoff++
	c.pump()
}
