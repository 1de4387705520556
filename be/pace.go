package be

import "time"

const (
	// idleRounds is how often a worker with nothing to do lets others run and
	// looks again, at least, before it arms the queue and blocks. Blocking and being woken
	// costs some microseconds, a round well under one.
	idleRounds = 4
	// yieldAfter is how long a worker that has work runs before it lets others run: those
	// that it woke wait for a core, where there are not more of these than workers, and the
	// scheduler itself makes room after 10 ms only.
	yieldAfter = 50 * time.Microsecond
	// yieldFull is the same while its turns are full: those that it woke find more messages
	// then, and two cores that share the work have fewer lines of memory to pass back and
	// forth.
	yieldFull = 100 * time.Microsecond
	// yieldAnyway is the same when it has woken nobody since, as in most turns of long
	// messages. Letting others run wakes a thread, if one sleeps, and the worker is often on
	// another core afterwards. A goroutine that something else woke waits for it where workers
	// have every core.
	yieldAnyway = 200 * time.Microsecond

	// longAway is how long it takes until a worker that let others run has its turn again
	// if these do not wait for anything, but compute: the scheduler lets each of them run
	// for 10 ms (forcePreemptNS in the runtime's proc.go).
	longAway = 2 * time.Millisecond
	// crowdedFor is how long, after the second time in a row, the worker lets nobody run
	// just to look again; doubled each time more, up to crowdedMost. It blocks instead: who
	// is woken goes ahead of those that wait for a core. (Once alone is often the kernel,
	// which ran another process.)
	crowdedFor  = 50 * time.Millisecond
	crowdedMost = 800 * time.Millisecond
)

// step is what a worker does after a turn.
type step uint8

const (
	stepTurn  step = iota // the next turn
	stepYield             // let others run first
	stepSleep             // block until there is something to do
)

// pace decides when a worker lets other goroutines run, and when it blocks. The worker's
// clock is handed in.
type pace struct {
	spin time.Duration // Config.Spin
	full *bool         // whether the last turn had as much to do as a turn takes
	told *bool         // whether it has woken anybody since it let others run

	idle    int           // turns without work, in a row
	since   time.Duration // the last that had some
	gone    bool          // it has let others run since the last turn
	left    time.Duration // and when it began to
	back    time.Duration // the turn after that
	away    time.Duration // how long that took, if long; else 0
	long    int           // times in a row that it took long
	crowded time.Duration // until then others compute on every core
}

// next decides after a turn that began at now.
func (p *pace) next(now time.Duration, busy bool) step {
	if p.gone {
		p.gone, p.back, p.away = false, now, now-p.left
		if p.long++; p.away < longAway {
			p.away, p.long = 0, 0
		} else if p.long >= 2 {
			p.crowded = now + min(crowdedFor<<min(p.long-2, 10), crowdedMost)
		}
	}
	if busy {
		p.idle, p.since = 0, now
		switch t := now - p.back; {
		case t < max(yieldAfter, p.away): // as long as the others had
			return stepTurn
		case *p.full && t < yieldFull, !*p.told && t < yieldAnyway:
			return stepTurn
		}
		return stepYield
	}
	if p.idle++; now < p.crowded || p.idle >= idleRounds && now-p.since >= p.spin {
		return stepSleep
	}
	return stepYield
}

// leave says that the worker lets others run now, until the next turn.
func (p *pace) leave(now time.Duration) { p.gone, p.left, *p.told = true, now, false }

// slept says that the worker was blocked until now.
func (p *pace) slept(now time.Duration) { p.idle, p.since = 0, now }
