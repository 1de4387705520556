// Package peak finds the best bandwidth of a run.
package peak

import "time"

// window is the time over which peak bandwidth is averaged.
const window = time.Millisecond

// Meter finds the best bandwidth over any of the consecutive windows of at least a
// millisecond, and over the whole run. It belongs to one goroutine.
type Meter struct {
	size    int64
	first   time.Time
	from    time.Time
	ops     int64 // at from
	bestBps float64
}

// Start begins a run of operations of size bytes.
func (p *Meter) Start(now time.Time, size int) {
	*p = Meter{size: int64(size), first: now, from: now}
}

// At tells the meter how many operations had completed at a time.
func (p *Meter) At(now time.Time, ops int64) {
	if d := now.Sub(p.from); d >= window {
		p.bestBps = max(p.bestBps, float64((ops-p.ops)*p.size)/d.Seconds())
		p.from, p.ops = now, ops
	}
}

// End closes the run.
func (p *Meter) End(now time.Time, ops int64) {
	if d := now.Sub(p.first); d > 0 {
		p.bestBps = max(p.bestBps, float64(ops*p.size)/d.Seconds())
	}
}

// Bps is the best bandwidth in bytes per second.
func (p *Meter) Bps() float64 { return p.bestBps }
