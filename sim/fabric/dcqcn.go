package fabric

import "github.com/byteexpress/byteexpress/sim/des"

// DCQCN is the congestion control of NICs (Zhu et al., "Congestion Control for
// Large-Scale RDMA Deployments", SIGCOMM 2015): receivers of marked packets send
// notifications (CNPs), senders lower the rate of the queue pair and raise it again
// by timers and bytes. The zero value is without.
type DCQCN struct {
	CNPInterval   des.Time // a receiver sends at most one a queue pair in that time
	AlphaTimer    des.Time // alpha decays after that time without a CNP
	IncreaseTimer des.Time // T
	IncreaseBytes int64    // B; 0: the timer alone
	FastSteps     int      // F: steps of fast recovery
	Gain          int64    // g, in gainOne-ths
	Rai, Rhai     int64    // bit/s: additive and hyper increase
	Rmin          int64    // bit/s: the least rate
	DecreaseGap   des.Time // CNPs that come sooner after one that was obeyed are ignored
	KeepTarget    bool     // of CNPs without a step of the timer between them, only the first lowers the target
}

// DCQCN15 is the parameters of the paper; it does not give Rhai, which is taken to be
// ten times Rai.
func DCQCN15() DCQCN {
	return DCQCN{
		CNPInterval: 50 * des.Microsecond, AlphaTimer: 55 * des.Microsecond, IncreaseTimer: 55 * des.Microsecond, IncreaseBytes: 10_000_000,
		FastSteps: 5, Gain: gainOne / 256, Rai: 40e6, Rhai: 400e6, Rmin: 10e6,
	}
}

// DCQCNCX is what ConnectX-5 and 6 come with, by their public documentation. Its
// bytes are counted in units of 64, which is assumed.
func DCQCNCX() DCQCN {
	return DCQCN{
		CNPInterval: 4 * des.Microsecond, DecreaseGap: 4 * des.Microsecond, AlphaTimer: des.Microsecond, IncreaseTimer: 300 * des.Microsecond,
		IncreaseBytes: 32767 * 64, FastSteps: 1, Gain: 5 * gainOne / 1024, Rai: 5e6, Rhai: 50e6, Rmin: 1e6, KeepTarget: true,
	}
}

// DCQCNHPCC is what the public simulator of HPCC uses at a rate: a notification for
// each marked packet, which senders obey every 4 us at most.
func DCQCNHPCC(gbps int) DCQCN {
	line := int64(gbps) * 1e9
	return DCQCN{
		DecreaseGap: 4 * des.Microsecond, AlphaTimer: des.Microsecond, IncreaseTimer: 300 * des.Microsecond,
		FastSteps: 1, Gain: gainOne / 256, Rai: line / 5000, Rhai: line / 500, Rmin: 100e6, KeepTarget: true,
	}
}

// ECN15 is the marking that the paper uses at 40 Gb/s.
func ECN15() ECN { return ECN{KminBytes: 5000, KmaxBytes: 200_000, Pmax: 0.01} }

// enabled reports whether there is congestion control.
func (c *DCQCN) enabled() bool { return c.AlphaTimer > 0 }

// Fractions are in parts of these.
const (
	alphaOne = 1 << 20
	gainOne  = 1 << 10
)

// reaction is the sender's state of one queue pair. It has none, and sends at line
// rate, until the first notification. Its timers are not events: what they did is
// worked out when the state is looked at next.
type reaction struct {
	active  bool
	alpha   int32
	steps   [2]int32 // by the timer, by bytes
	current int64    // Rc, bit/s
	target  int64    // Rt
	line    int64
	alphaAt des.Time // when alpha decays next
	timerAt des.Time // when the increase timer expires next
	cutAt   des.Time // when the rate was lowered last
	bytes   int64    // sent since the last step by bytes
}

// notified obeys a notification.
func (r *reaction) notified(c *DCQCN, now des.Time, line int64) {
	r.advance(c, now)
	if !r.active {
		*r = reaction{active: true, current: line, target: line, line: line, alpha: alphaOne}
	} else if now-r.cutAt < c.DecreaseGap {
		return
	}
	if !c.KeepTarget || r.steps[0] > 0 {
		r.target = r.current
	}
	r.current = max(r.current-(r.current*int64(r.alpha))>>21, c.Rmin)
	r.alpha += int32(int64(alphaOne-r.alpha) * c.Gain / gainOne)
	r.cutAt, r.alphaAt, r.timerAt = now, now+c.AlphaTimer, now+c.IncreaseTimer
	r.bytes, r.steps = 0, [2]int32{}
}

// advance does what the timers did up to now, in their order; alpha's first.
func (r *reaction) advance(c *DCQCN, now des.Time) {
	for r.active && min(r.alphaAt, r.timerAt) <= now {
		if r.alphaAt <= r.timerAt {
			r.alpha -= int32(int64(r.alpha) * c.Gain / gainOne)
			r.alphaAt += c.AlphaTimer
		} else {
			r.timerAt += c.IncreaseTimer
			r.increase(c, 0)
		}
	}
}

// sent counts bytes on the wire.
func (r *reaction) sent(c *DCQCN, n int64) {
	if !r.active || c.IncreaseBytes == 0 {
		return
	}
	for r.bytes += n; r.active && r.bytes >= c.IncreaseBytes; r.bytes -= c.IncreaseBytes {
		r.increase(c, 1)
	}
}

// increase is one step up, by the timer (0) or by bytes (1).
func (r *reaction) increase(c *DCQCN, by int) {
	r.steps[by]++
	switch least := int(min(r.steps[0], r.steps[1])); {
	case int(max(r.steps[0], r.steps[1])) <= c.FastSteps:
	case least > c.FastSteps:
		r.target += c.Rhai * int64(least-c.FastSteps)
	default:
		r.target += c.Rai
	}
	r.target = min(r.target, r.line)
	r.current = (r.current + r.target) / 2
	if r.current >= r.line-r.line/10_000 {
		*r = reaction{}
	}
}

// gap is the time from the start of a frame of n bytes to that of the next, 0 without
// a limit.
func (r *reaction) gap(n int) des.Time {
	if !r.active {
		return 0
	}
	return des.Time(int64(n) * 8 * int64(des.Second) / r.current)
}
