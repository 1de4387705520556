package verbtest

import "time"

// peakWindow is the time over which peak bandwidth is averaged.
const peakWindow = time.Millisecond

// peakMeter finds the best bandwidth over any of the consecutive windows of at
// least peakWindow. A run that is shorter has its average as peak.
type peakMeter struct {
	size     int64
	first    time.Time
	from     time.Time
	ops      int64 // at from
	bestBps  float64
	averaged bool
}

func (p *peakMeter) start(now time.Time, size int64) {
	*p = peakMeter{size: size, first: now, from: now}
}

// at tells the meter how many operations had completed at a time.
func (p *peakMeter) at(now time.Time, ops int64) {
	if d := now.Sub(p.from); d >= peakWindow {
		p.bestBps = max(p.bestBps, float64((ops-p.ops)*p.size)/d.Seconds())
		p.from, p.ops = now, ops
	}
}

// end closes the run.
func (p *peakMeter) end(now time.Time, ops int64) {
	if d := now.Sub(p.first); p.bestBps == 0 && d > 0 {
		p.bestBps = float64(ops*p.size) / d.Seconds()
	}
}
