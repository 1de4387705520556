package bemalloc

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats is a snapshot of a pool. While no call is running it adds up:
//
//	RegisteredBytes = FreeBytes + LargeBytes + CachedLargeBytes +
//		the classes' InUse + Cached + Free + Waste bytes
//
// While calls are running, cached and in-use bytes are estimates.
type Stats struct {
	RegisteredBytes     int64 // open blocks and huge runs
	PeakRegisteredBytes int64
	Regions             int   // registrations with the first device
	FreeBytes           int64 // free units of open blocks, and cached huge runs
	LargeBytes          int64 // buffers over 32 KiB in use, rounded up
	InUseBytes          int64 // all buffers in use, rounded up
	CachedBytes         int64 // objects and runs in caches
	CachedLargeBytes    int64 // the runs among them
	QuarantineBytes     int64 // freed buffers that Debug holds back; counted as in use
	HugeRuns            int   // buffers over 4 MiB in use
	ParkedBytes         int64 // memory that a device refused to let go of

	Classes [numClasses]ClassStats

	Register         TimeStats // calls of Registrar.Register, failed ones included
	Deregister       TimeStats
	RegisterFailures int64

	BatchTakes    int64 // batches from central lists
	BatchPuts     int64 // batches to them
	LockWaits     int64 // times a central list was locked by another
	BadFrees      int64
	Corruptions   int64 // CorruptErrors
	DoubleFrees   int64
	HugeFallbacks int64 // blocks that HugeTLB could not serve
}

// Add adds the numbers of another pool: sums, but for times, whose Max is the longer
// one. The peak is then at least the true one, as pools have theirs at different times.
func (s *Stats) Add(o *Stats) {
	for _, p := range []struct {
		to   *int64
		from int64
	}{
		{&s.RegisteredBytes, o.RegisteredBytes}, {&s.PeakRegisteredBytes, o.PeakRegisteredBytes}, {&s.FreeBytes, o.FreeBytes},
		{&s.LargeBytes, o.LargeBytes}, {&s.InUseBytes, o.InUseBytes}, {&s.CachedBytes, o.CachedBytes},
		{&s.CachedLargeBytes, o.CachedLargeBytes}, {&s.QuarantineBytes, o.QuarantineBytes}, {&s.ParkedBytes, o.ParkedBytes},
		{&s.RegisterFailures, o.RegisterFailures}, {&s.BatchTakes, o.BatchTakes}, {&s.BatchPuts, o.BatchPuts},
		{&s.LockWaits, o.LockWaits}, {&s.BadFrees, o.BadFrees}, {&s.Corruptions, o.Corruptions},
		{&s.DoubleFrees, o.DoubleFrees}, {&s.HugeFallbacks, o.HugeFallbacks},
	} {
		*p.to += p.from
	}
	s.Regions += o.Regions
	s.HugeRuns += o.HugeRuns
	for i := range s.Classes {
		c, d := &s.Classes[i], &o.Classes[i]
		c.Size = max(c.Size, d.Size)
		c.Spans += d.Spans
		c.InUse += d.InUse
		c.Cached += d.Cached
		c.Free += d.Free
		c.WasteBytes += d.WasteBytes
	}
	s.Register.add(&o.Register)
	s.Deregister.add(&o.Deregister)
}

// ClassStats counts the objects of one size class.
type ClassStats struct {
	Size       int // bytes of an object
	Spans      int
	InUse      int64 // objects handed out
	Cached     int64 // objects in caches
	Free       int64 // objects in spans
	WasteBytes int64 // ends of spans too short for an object
}

// TimeStats sums up calls. Buckets[i] counts those that took less than 2^i
// microseconds and no less than half of that; the last has all longer ones.
type TimeStats struct {
	Count   int64
	Total   time.Duration
	Max     time.Duration
	Buckets [24]int64
}

func (t *TimeStats) add(o *TimeStats) {
	t.Count += o.Count
	t.Total += o.Total
	t.Max = max(t.Max, o.Max)
	for i := range t.Buckets {
		t.Buckets[i] += o.Buckets[i]
	}
}

type counters struct {
	register, deregister  timing
	registerFailures      atomic.Int64
	badFrees, doubleFrees atomic.Int64
	corruptions           atomic.Int64
	hugeFallbacks         atomic.Int64
}

type timing struct {
	count, total, max atomic.Int64
	buckets           [24]atomic.Int64
}

func (t *timing) add(d time.Duration) {
	t.count.Add(1)
	t.total.Add(int64(d))
	for m := t.max.Load(); int64(d) > m && !t.max.CompareAndSwap(m, int64(d)); m = t.max.Load() {
	}
	i := bits.Len64(uint64(max(d, 0) / time.Microsecond))
	t.buckets[min(i, len(t.buckets)-1)].Add(1)
}

func (t *timing) stats() (s TimeStats) {
	s.Count, s.Total, s.Max = t.count.Load(), time.Duration(t.total.Load()), time.Duration(t.max.Load())
	for i := range s.Buckets {
		s.Buckets[i] = t.buckets[i].Load()
	}
	return s
}

// Stats takes a snapshot without stopping anyone.
func (p *Pool) Stats() Stats {
	s := Stats{
		QuarantineBytes:  p.dbg.quarantined(),
		Register:         p.counters.register.stats(),
		Deregister:       p.counters.deregister.stats(),
		RegisterFailures: p.counters.registerFailures.Load(),
		BadFrees:         p.counters.badFrees.Load(),
		Corruptions:      p.counters.corruptions.Load(),
		DoubleFrees:      p.counters.doubleFrees.Load(),
		HugeFallbacks:    p.counters.hugeFallbacks.Load(),
	}
	var cached [numClasses]int64
	count := func(c *cache) {
		for i := range classes {
			cached[i] += c.held(i)
		}
		s.CachedLargeBytes += c.heldUnits() << unitShift
	}
	p.local.each(count)
	p.heapsMu.Lock()
	for c := range p.heaps {
		count(c)
	}
	p.heapsMu.Unlock()
	p.eachCentral(func(ce *central) { ce.stats(&s) })
	for i := range s.Classes {
		c := &s.Classes[i]
		c.Cached = min(cached[i], c.InUse)
		c.InUse -= c.Cached
		s.InUseBytes += c.InUse * int64(c.Size)
		s.CachedBytes += c.Cached * int64(c.Size)
	}
	p.runs.stats(&s)
	s.CachedLargeBytes = min(s.CachedLargeBytes, s.LargeBytes)
	s.LargeBytes -= s.CachedLargeBytes
	s.InUseBytes += s.LargeBytes
	s.CachedBytes += s.CachedLargeBytes
	s.Regions = int(p.regions())
	return s
}

// stats adds up a list; objects in caches count as in use here.
func (ce *central) stats(s *Stats) {
	ce.lock()
	defer ce.mu.Unlock()
	ci := &classes[ce.class]
	c := &s.Classes[ce.class]
	c.Size = int(ci.size)
	c.Spans += ce.spans
	c.InUse += ce.out
	c.Free += int64(ce.spans)*int64(ci.nobj) - ce.out
	c.WasteBytes += int64(ce.spans) * int64(ci.units*unitSize-ci.limit)
	s.BatchTakes += ce.takes
	s.BatchPuts += ce.puts
	s.LockWaits += ce.waits
}

func (r *runs) stats(s *Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.RegisteredBytes = r.registered
	s.PeakRegisteredBytes = r.peak
	s.FreeBytes = r.freeUnits<<unitShift + r.hugeFreed
	s.LargeBytes = r.large
	s.HugeRuns = r.huge
	s.ParkedBytes = r.parked
}

// regions counts the registrations with one device.
func (p *Pool) regions() (n int) {
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	for b := range p.runs.hi {
		if bl := p.table.block(b); bl.length > 0 && (bl.state == blockOpen || bl.state == blockHuge) {
			n++
		}
	}
	return n
}
