// Package peak finds the best bandwidth of a run.
package peak

import "time"

// Window is the least time over which peak bandwidth is averaged: several times that for
// which a busy system lets a thread wait.
const Window = 10 * time.Millisecond

// Lateness is how many times the operations that are under way at a time a window has at
// least: so many may be seen later than they completed, as if they were a window's own.
const Lateness = 8

// Meter finds the best bandwidth over any of the consecutive windows of at least Window
// and of enough operations. It is not for several goroutines at once.
type Meter struct {
	size, least int64
	first, from time.Time
	ops         int64 // at from
	bestBps     float64
}

// Start begins a run of operations of size bytes, of which so many are under way at a
// time.
func (p *Meter) Start(now time.Time, size, underWay int) {
	*p = Meter{size: int64(size), least: Lateness * int64(underWay), first: now, from: now}
}

// At tells the meter how many operations had completed at a time.
func (p *Meter) At(now time.Time, ops int64) {
	if d := now.Sub(p.from); d >= Window && ops-p.ops >= p.least {
		p.bestBps = max(p.bestBps, float64((ops-p.ops)*p.size)/d.Seconds())
		p.from, p.ops = now, ops
	}
}

// End closes the run, which is a window too.
func (p *Meter) End(now time.Time, ops int64) {
	if d := now.Sub(p.first); d > 0 {
		p.bestBps = max(p.bestBps, float64(ops*p.size)/d.Seconds())
	}
}

// Bps is the best bandwidth in bytes per second, 0 while there was no window.
func (p *Meter) Bps() float64 { return p.bestBps }
