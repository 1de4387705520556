package tcp

import "github.com/byteexpress/byteexpress/sim/des"

// state is what a sender is doing about loss.
type state uint8

const (
	open     state = iota
	recovery       // acknowledgements told of loss
	slow           // after a timeout
)

// congestion is the congestion window and what moves it.
type congestion struct {
	state    state
	cwnd     int // bytes
	ssthresh int
	recover  uint64 // what was sent when loss was found: recovered when acknowledged
	limited  bool   // the window, not the application, held back the last data
	most     int    // bytes in the network after the last pump
	grown    int    // part of a byte by which the window has grown: over cwnd

	before struct{ cwnd, ssthresh int } // the reduction under way
	resent int                          // segments since, that did not turn out to have come twice

	cubic
	dctcp
}

func (c *Conn) startCongestion(cfg *Config) {
	c.cwnd, c.ssthresh = cfg.InitialWindow*cfg.MSS, 1<<30
	c.alpha = alphaOne
}

// react moves the window after an acknowledgement of acked bytes in order, and came
// bytes in all; lost is whether it told of loss, echo of marks.
func (c *Conn) react(acked, came int, lost, echo bool) {
	if c.state != open && c.una >= c.recover {
		if c.state == recovery {
			c.cwnd = max(c.ssthresh, 2*c.n.cfg.MSS)
		}
		c.state = open
	}
	if c.n.cfg.Control == DCTCP {
		c.echoed(acked, echo)
	}
	switch {
	case lost && c.state == open:
		c.n.stats.Recoveries++
		c.remember()
		c.ssthresh = c.reduced()
		c.cwnd = c.ssthresh
		c.state, c.recover = recovery, c.next
	case c.state == recovery:
	case came > 0:
		c.grow(came)
	}
}

// timedOut begins again with one segment.
func (c *Conn) timedOut() {
	if c.state == open {
		c.remember()
	}
	if c.state != slow {
		c.ssthresh = c.reduced()
	}
	c.cwnd, c.grown = c.n.cfg.MSS, 0
	c.state, c.recover = slow, c.next
}

// remember keeps the window in case that its reduction is for nothing.
func (c *Conn) remember() {
	c.before.cwnd, c.before.ssthresh = c.cwnd, c.ssthresh
	c.resent = 0
}

// duplicated takes it that some segments came twice. If all that were sent again
// did, or a timeout was too early (RFC 5682), nothing had been lost.
func (c *Conn) duplicated(n int, early bool) {
	if n == 0 && !early || c.state == open {
		return
	}
	if c.resent -= n; c.resent > 0 && !early {
		return
	}
	c.n.stats.Undone++
	c.cwnd, c.ssthresh, c.state = max(c.cwnd, c.before.cwnd), c.before.ssthresh, open
	for i := c.first; i < len(c.out); i++ { // on their way after all
		if f := &c.out[i]; f.lost {
			f.lost = false
			c.lost -= int(f.n)
		}
	}
}

// reduced is the window after a loss.
func (c *Conn) reduced() int {
	w := c.cwnd / 2
	if c.n.cfg.Control == Cubic {
		w = c.cubic.reduce(c.cwnd)
	}
	return max(w, 2*c.n.cfg.MSS)
}

// grow widens the window by what arrived, if it was in use.
func (c *Conn) grow(came int) {
	mss := c.n.cfg.MSS
	if c.cwnd < c.ssthresh {
		if c.limited || c.cwnd < 2*(c.most+came) {
			c.cwnd = min(c.cwnd+came, c.ssthresh)
		}
		return
	}
	if !c.limited {
		c.epoch = 0
		return
	}
	if c.n.cfg.Control == Cubic {
		c.grown += c.cubic.growth(c.n.k.Now(), c.srtt, c.cwnd, came, mss)
	} else {
		c.grown += came * mss
	}
	c.cwnd += c.grown / c.cwnd
	c.grown %= c.cwnd
}

// cubic is the state of RFC 9438.
type cubic struct {
	wMax  int      // bytes
	epoch des.Time // begin of the time of growth; 0: none
	k     int64    // when wMax is reached again, in units of cubicTick after epoch
	wEst  int      // bytes: what Reno would have
	wRest int
}

// cubicTick is the unit of time in which the cubic function is worked out: its third
// power fits.
const cubicTick = des.Millisecond / 64

// ticksPerSecond to the third power over C = 0.4 segments a second cubed.
const cubicScale = 64_000 * 64_000 * 64_000 / 2 * 5

// reduce notes a loss and gives the window after it: 0.7.
func (u *cubic) reduce(cwnd int) int {
	u.epoch = 0
	if cwnd < u.wMax { // it gives way to others (RFC 9438, 4.7)
		u.wMax = cwnd * 17 / 20
	} else {
		u.wMax = cwnd
	}
	return cwnd * 7 / 10
}

// growth is by how much the window grows for some bytes that arrived, times cwnd.
func (u *cubic) growth(now, rtt des.Time, cwnd, came, mss int) int {
	if u.epoch == 0 {
		u.epoch = max(now, 1)
		u.k = 0
		if u.wMax > cwnd {
			u.k = cubeRoot(int64(min((u.wMax-cwnd)/mss+1, 10_000)) * cubicScale)
		}
		u.wMax = max(u.wMax, cwnd)
		u.wEst, u.wRest = cwnd, 0
	}
	t := int64((now-u.epoch+rtt)/cubicTick) - u.k
	t = max(min(t, 1_000_000), -1_000_000)
	target := u.wMax + int(t*t*t/(cubicScale/int64(mss)))
	u.wRest += came * mss * 9 // 3 (1 - 0.7) / (1 + 0.7) is 9/17
	u.wEst += u.wRest / (17 * cwnd)
	u.wRest %= 17 * cwnd
	target = max(target, u.wEst)
	if target <= cwnd {
		return came * mss / 100
	}
	return came * min(target-cwnd, cwnd/2)
}

// cubeRoot is the integer cube root.
func cubeRoot(x int64) int64 {
	lo, hi := int64(0), int64(2_097_151)
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if mid*mid*mid <= x {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// alphaOne is the share of 1.
const alphaOne = 1 << 20

// dctcp is the state of RFC 8257.
type dctcp struct {
	alpha  int64
	bytes  int64 // acknowledged in this window
	echoes int64 // of them, as marked
	window uint64
	cutTo  uint64 // the window that was cut ends here
}

// dctcpShift is of g, 1/16.
const dctcpShift = 4

// echoed counts marks, and narrows the window by their share once a window.
func (c *Conn) echoed(acked int, echo bool) {
	d := &c.dctcp
	d.bytes += int64(acked)
	if echo {
		d.echoes += int64(acked)
	}
	if c.una >= d.window && d.bytes > 0 {
		share := d.echoes * alphaOne / d.bytes
		d.alpha += (share - d.alpha) / (1 << dctcpShift)
		d.window, d.bytes, d.echoes = c.next, 0, 0
	}
	if echo && c.state == open && c.una >= d.cutTo {
		c.cwnd = max(c.cwnd-int(int64(c.cwnd)*d.alpha/(2*alphaOne)), 2*c.n.cfg.MSS)
		c.ssthresh = c.cwnd
		d.cutTo = c.next
	}
}
