package bemalloc

import (
	"sync/atomic"
	"time"
)

const (
	tickEvery  = time.Second
	idleTicks  = 2 // ticks without change after which caches count as idle
	aheadUnits = unitsPerBlock
)

// janitor is the pool's one goroutine: it gives free blocks back, opens the next
// block ahead of demand, and empties idle caches. It runs from the first block
// until Close, and sleeps without a timer while there is nothing to do.
type janitor struct {
	started atomic.Bool
	parked  atomic.Bool // asleep until kicked
	kicks   chan struct{}
	stop    chan struct{}
	done    chan struct{}

	cached uint64 // fingerprint of the caches at the last tick
	still  int    // ticks that it stayed the same
}

func (j *janitor) init() {
	j.kicks = make(chan struct{}, 1)
	j.stop = make(chan struct{})
	j.done = make(chan struct{})
}

// kick wakes a sleeping janitor.
func (j *janitor) kick() {
	if j.parked.Load() {
		select {
		case j.kicks <- struct{}{}:
		default:
		}
	}
}

// startJanitor starts the goroutine with the first block.
func (p *Pool) startJanitor() {
	if p.cfg.noJanitor || p.closed.Load() || !p.jan.started.CompareAndSwap(false, true) {
		p.jan.kick()
		return
	}
	go p.janitor()
}

// stopJanitor ends the goroutine and waits for it. Called once.
func (p *Pool) stopJanitor() {
	close(p.jan.stop)
	if p.jan.started.Swap(true) && !p.cfg.noJanitor {
		<-p.jan.done
	}
}

func (p *Pool) janitor() {
	j := &p.jan
	defer close(j.done)
	timer := time.NewTimer(tickEvery)
	defer timer.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-timer.C:
		}
		if !p.tick(p.cfg.now()) {
			// What came up before parked was set sent no kick: look once more.
			j.parked.Store(true)
			if !p.tick(p.cfg.now()) {
				select {
				case <-j.stop:
					return
				case <-j.kicks:
				}
			}
			j.parked.Store(false)
		}
		timer.Reset(tickEvery)
	}
}

// tick does what is due at now and reports whether there is more to come.
func (p *Pool) tick(now time.Time) bool {
	r := &p.runs
	r.mu.Lock()
	free := r.freeBytes()
	p.release.sample(now, r.registered-free)
	keep := p.retain()
	delay := p.release.delay
	if free > keep {
		p.stampIdle(now)
	}
	short := r.registered > 0 && r.freeUnits < aheadUnits
	growing := !r.growth.last.IsZero() && now.Sub(r.growth.last) < tickEvery
	r.mu.Unlock()

	if free > keep {
		_, _ = p.closeFree(keep, now.Add(-delay).UnixNano(), releasePerTic) // failures are parked and counted
	}
	if short && growing && r.growAhead() {
		p.growAhead()
	}
	active := p.flushIdle()
	return free > keep || growing || active
}

// growAhead reports whether nobody opens blocks or was refused.
func (r *runs) growAhead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flight == nil && r.growth.backOff == 0
}

// growAhead opens one block before somebody has to wait for it.
func (p *Pool) growAhead() {
	p.runs.mu.Lock()
	g := p.board()
	p.runs.mu.Unlock()
	if g.lead {
		p.grow(g.flight)
	}
}

// stampIdle dates the blocks and huge runs that became free since the last tick.
// Called under the run lock.
func (p *Pool) stampIdle(now time.Time) {
	for b := range p.runs.hi {
		if bl := p.table.block(b); bl.state == blockOpen && bl.free == ^uint64(0) && bl.idleSince == 0 {
			bl.idleSince = now.UnixNano()
		}
	}
	for _, f := range p.runs.hugeFree {
		if bl := p.table.block(f); bl.idleSince == 0 {
			bl.idleSince = now.UnixNano()
		}
	}
}

// flushIdle empties the caches of handle-less calls when they did not change for
// idleTicks. It reports whether caches hold anything.
func (p *Pool) flushIdle() bool {
	j := &p.jan
	sum, held := uint64(14695981039346656037), false // FNV-1a
	p.local.each(func(c *cache) {
		for i := range c.mag {
			n := uint64(c.held(i))
			held = held || n > 0
			sum = (sum ^ n) * 1099511628211
		}
		n := uint64(c.heldUnits())
		held = held || n > 0
		sum = (sum ^ n) * 1099511628211
	})
	if !held || sum != j.cached {
		j.cached, j.still = sum, 0
		return held
	}
	if j.still++; j.still < idleTicks {
		return true
	}
	j.still = 0
	p.flushCaches(flushOnce)
	return false
}

// noteFree wakes the janitor when more is free than is kept. Called under the
// run lock.
func (p *Pool) noteFree() {
	if p.jan.parked.Load() && p.runs.freeBytes() > p.retain() {
		p.jan.kick()
	}
}
