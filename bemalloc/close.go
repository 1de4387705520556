package bemalloc

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

// LeakError says that a pool could not be closed because buffers are in use. Its
// memory stays registered and usable; Close may be called again once they are
// freed.
type LeakError struct {
	Allocations int64
	Bytes       int64      // with rounding
	Sizes       []LeakSize // by size, smallest first
	Sites       []LeakSite // by place of allocation, most bytes first; with Debug.Sites

	// Frees that were refused so far, as in Stats. After a double free a buffer may have two
	// owners, and what is in use be counted wrongly: those are to be looked for first.
	BadFrees, DoubleFrees int64
}

// LeakSize counts leaked buffers of one rounded size.
type LeakSize struct {
	Bytes int64
	Count int64
}

// LeakSite counts leaked buffers that one place in the program allocated.
type LeakSite struct {
	Stack []string // innermost frame first, as "function file:line"
	Bytes int64    // as asked for
	Count int64
}

// Error lists the leaked sizes and, if known, who allocated them.
func (e *LeakError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "bemalloc: close: %d allocations of %d bytes are in use:", e.Allocations, e.Bytes)
	for _, l := range e.Sizes {
		fmt.Fprintf(&s, " %dx%d", l.Count, l.Bytes)
	}
	if e.BadFrees+e.DoubleFrees > 0 {
		fmt.Fprintf(&s, ", which may be the work of %d bad and %d double frees: Debug.Check (or BEMALLOC_DEBUG=check) tells of each", e.BadFrees, e.DoubleFrees)
	}
	for _, l := range e.Sites {
		fmt.Fprintf(&s, "\n%d allocations of %d bytes at:\n\t%s", l.Count, l.Bytes, strings.Join(l.Stack, "\n\t"))
	}
	if len(e.Sites) == 0 {
		s.WriteString("; Debug.Sites (or BEMALLOC_DEBUG=sites) tells who allocated them")
	}
	return s.String()
}

// Close ends the pool: no call on its heaps may be running or follow, but for Free.
// Pool.Alloc may: it gets ErrClosed, or a buffer in use. While buffers are in use it returns a *LeakError and
// keeps the memory, as it does, with another error that matches ErrLeak, while an Alloc takes long to open
// memory; when a device refuses to deregister, that error, and keeps
// what the device may still reach. Each time Close may be called again. It is
// idempotent.
func (p *Pool) Close() error {
	p.closeMu.Lock()
	defer p.closeMu.Unlock()
	if p.gone.Load() {
		return nil
	}
	p.closed.Store(true)
	p.wakeAll()
	p.cfg.Budget.leave(p)
	if !p.stopped {
		p.stopped = true
		p.stopJanitor()
	}
	p.runs.mu.Lock()
	f := p.runs.flight
	p.runs.mu.Unlock()
	if f != nil {
		<-f.done
	}
	p.dbg.drain()
	for looks := 1; ; looks++ {
		p.flushCaches(flushLast)
		if leak := p.leaks(); leak != nil {
			return leak
		}
		_, _ = p.closeFree(0, maxClock, maxBlocks) // what fails is parked
		if !p.opened() {
			break
		}
		if looks == closeLooks {
			return errTaking
		}
		time.Sleep(closePause) // an Alloc has taken memory since, and is about to have a buffer
	}
	if err := p.unpark(); err != nil {
		return err
	}
	p.gone.Store(true)
	return unreserve(p.mem.reserved)
}

// Close looks so often, with pauses of that length, for memory that an Alloc is taking.
const (
	closeLooks = 100
	closePause = 100 * time.Microsecond
)

// opened reports whether there are blocks but for those that are parked.
func (p *Pool) opened() bool {
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	for b := range p.runs.hi {
		if st := p.table.block(b).state; st != blockClosed && st != blockParked {
			return true
		}
	}
	return false
}

// leaks describes what is in use once the caches are empty.
func (p *Pool) leaks() *LeakError {
	e := &LeakError{BadFrees: p.counters.badFrees.Load(), DoubleFrees: p.counters.doubleFrees.Load()}
	var out [numClasses]int64
	add := func(size, n int64) {
		e.Allocations += n
		e.Bytes += n * size
		e.Sizes = append(e.Sizes, LeakSize{size, n})
	}
	p.eachCentral(func(ce *central) {
		ce.lock()
		out[ce.class] += ce.out
		ce.mu.Unlock()
	})
	for c, n := range out {
		if n > 0 {
			add(int64(classes[c].size), n)
		}
	}
	large := map[int64]int64{}
	p.runs.mu.Lock()
	for b := range p.runs.hi {
		for u := b * unitsPerBlock; u < (b+1)*unitsPerBlock; u++ {
			if w := p.table.word(u); w.isHead() {
				large[int64(w.length())<<unitShift]++
			}
		}
	}
	p.runs.mu.Unlock()
	for size, n := range large {
		add(size, n)
	}
	if e.Allocations == 0 {
		return nil
	}
	sort.Slice(e.Sizes, func(i, j int) bool { return e.Sizes[i].Bytes < e.Sizes[j].Bytes })
	e.Sites = p.dbg.sites()
	return e
}

// Is lets a LeakError be found by errors.Is(err, ErrLeak).
func (e *LeakError) Is(target error) bool { return target == ErrLeak }

// ErrLeak matches every LeakError.
var ErrLeak = errors.New("bemalloc: buffers in use")

// errTaking is what Close returns while a call of Alloc that began before it has memory but no buffer yet.
var errTaking = fmt.Errorf("%w: another goroutine's Alloc has begun and not ended; call Close again when it has", ErrLeak)
