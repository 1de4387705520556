package core

import (
	"math"
	"sync/atomic"
	"time"
)

// Replica is what selection knows of one replica. The zero value with its exported
// fields set is not ready yet. Any goroutine may use it.
type Replica struct {
	ID   uint32 // unique in its Set for ever
	Tier int    // locality: replicas of a lower tier are asked first
	Key  uint64 // hash of its name, for affinity
	User any    // the owner's

	ready       atomic.Bool
	starting    atomic.Bool
	draining    atomic.Bool
	outstanding atomic.Int32
	ewma        atomic.Int64 // nanoseconds; 0: nothing known
	stamp       atomic.Int64 // when ewma was set

	row     atomic.Int32  // failures in a row
	window  atomic.Uint64 // answers << 32 | failures since opened
	opened  atomic.Int64
	until   atomic.Int64 // ejected until then; 0: not ejected
	probing atomic.Bool  // the one probe of a half-open replica is out

	ejections int           // in a row; the Set's lock
	admitted  time.Duration // when the last ejection ended; the Set's lock
}

// SetReady says whether there is a connection to the replica.
func (r *Replica) SetReady(ready bool) { r.ready.Store(ready) }

// Ready tells whether there is a connection.
func (r *Replica) Ready() bool { return r.ready.Load() }

// SetStarting says whether the first connection to the replica is being set up: calls that
// others failed wait for that.
func (r *Replica) SetStarting(starting bool) { r.starting.Store(starting) }

// SetDraining keeps new calls away from the replica, if there is another.
func (r *Replica) SetDraining(draining bool) { r.draining.Store(draining) }

// Outstanding is how many attempts it has not ended.
func (r *Replica) Outstanding() int { return int(r.outstanding.Load()) }

// Ejected tells whether the replica is kept out, or half open.
func (r *Replica) Ejected() bool { return r.until.Load() != 0 }

// Mean is the moving average of its latency, which leans to the longer ones.
func (r *Replica) Mean() time.Duration { return time.Duration(r.ewma.Load()) }

// idleHalf is the idle time after which half of a latency is forgotten, so that
// a replica that was slow once is tried again.
const idleHalf = time.Second

// score is the expected cost of one more attempt: lower is better.
func (r *Replica) score(now time.Duration) float64 {
	mean := float64(r.ewma.Load())
	if idle := now - time.Duration(r.stamp.Load()); idle > idleHalf {
		mean = math.Ldexp(mean, -int(min(idle/idleHalf, 40)))
	}
	return (mean + 1) * float64(r.outstanding.Load()+1)
}

// sample moves the average: at once half of the way up, slowly down.
func (r *Replica) sample(now, d time.Duration) {
	old := r.ewma.Load()
	v := int64(max(d, 1))
	switch {
	case old == 0:
	case v > old:
		v = old + (v-old)/2
	default:
		v = old - (old-v)/8
	}
	r.ewma.Store(v)
	r.stamp.Store(int64(now))
}

// penalize counts a failure as an answer twice as slow as usual, so that a replica that
// fails at once does not look fast.
func (r *Replica) penalize(now, d time.Duration) {
	r.sample(now, max(d, 2*time.Duration(r.ewma.Load()), time.Millisecond))
}

// restarted forgets what was known of an earlier process.
func (r *Replica) restarted() {
	r.row.Store(0)
	r.window.Store(0)
	r.until.Store(0)
	r.ewma.Store(0)
	r.draining.Store(false)
}

// admission is whether and how a replica may be picked.
type admission uint8

const (
	closed   admission = iota
	halfOpen           // for one probe
	open
)

func (r *Replica) admission(now time.Duration) admission {
	if !r.ready.Load() || r.draining.Load() {
		return closed
	}
	until := r.until.Load()
	switch {
	case until == 0:
		return open
	case int64(now) >= until && !r.probing.Load():
		return halfOpen
	}
	return closed
}

// ProbeOver gives a probe back that no attempt came of.
func (r *Replica) ProbeOver() { r.probing.Store(false) }
