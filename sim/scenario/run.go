package scenario

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// maxSamples is how many points a series may have.
const maxSamples = 100_000

// Job is one run that a scenario asks for: a variant, at one value of the sweep if
// there is one.
type Job struct {
	Variant string
	Point   *Point

	s *Scenario
	v Variant
}

// Jobs are the runs of the scenario, in the order of its variants and within each
// of its sweep. Each is independent of the others.
func (s *Scenario) Jobs() (jobs []Job) {
	for i := range s.Variants {
		if s.Sweep == nil {
			jobs = append(jobs, Job{s.Variants[i].Name, nil, s, s.Variants[i]})
			continue
		}
		for _, value := range s.Sweep.Values {
			c, err := s.at(value)
			if err != nil { // the check of the scenario finds it before
				continue
			}
			jobs = append(jobs, Job{c.Variants[i].Name, &Point{s.Sweep.Of, value}, c, c.Variants[i]})
		}
	}
	return jobs
}

// workload is what a kind of workload does. setup opens its connections; start
// begins its load, which does not begin anything at or after b.end.
type workload interface {
	setup(b *bench) error
	start(b *bench) error
	// finish adds what only the workload knows to the result.
	finish(b *bench, r *Run)
}

// bench is a run that is under way.
type bench struct {
	s                *Scenario
	n                network
	k                *des.Kernel
	start, warm, end des.Time
	tallies          []*tally
	arrived          int64 // bytes that applications received since the warm-up, until the end
	total            int64 // since the start
	err              error // of the load
}

// Run carries the job out. progress, which may be nil, is told now and then how much
// of the virtual time is done; an error that it returns ends the run.
func (j *Job) Run(progress func(done, total des.Time) error) (*Run, error) {
	r, err := j.run(progress)
	return r, errors.Wrapf(err, "scenario %s, variant %s", j.s.Name, j.Variant)
}

func (j *Job) run(progress func(done, total des.Time) error) (*Run, error) {
	s := j.s
	n, err := s.newNetwork(&j.v)
	if err != nil {
		return nil, err
	}
	f := n.fabric()
	b := &bench{s: s, n: n, k: f.Kernel()}
	w := workloads[s.Workload.Kind]()
	if err := w.setup(b); err != nil {
		return nil, err
	}
	if err := n.settle(); err != nil {
		return nil, err
	}
	b.start = b.now()
	b.warm, b.end = b.start+s.Warmup.time(), b.start+s.Duration.time()
	before := b.k.Events()
	if err := w.start(b); err != nil {
		return nil, err
	}
	b.plan(s.Faults)
	r := &Run{Variant: j.Variant, Point: j.Point, Hosts: f.Hosts(), Series: Series{PeriodNS: int64(s.Sample.time() / des.Nanosecond)}}
	if err := b.watch(r, progress); err != nil {
		return nil, err
	}
	for _, t := range b.tallies {
		r.Classes = append(r.Classes, t.class())
	}
	r.GoodputMbps = mbps(b.arrived, b.end-b.warm)
	r.Events = b.k.Events() - before
	b.network(r)
	n.counters(r)
	w.finish(b, r)
	return r, nil
}

// watch lets the load and what is left of it run, sample by sample.
func (b *bench) watch(r *Run, progress func(done, total des.Time) error) error {
	f, period := b.n.fabric(), b.s.Sample.time()
	total, paused, arrived := b.end+b.s.Drain.time()-b.start, uint64(0), int64(0)
	for now := b.start + period; ; now += period {
		over := now > b.end
		if err := b.k.Run(min(now, b.start+total)); err != nil {
			return err
		}
		if b.err != nil {
			return b.err
		}
		if !over {
			p := f.PortTotals().PausesSent
			r.Series.QueueBytes = append(r.Series.QueueBytes, int64(f.LongestQueue()))
			r.Series.Pauses = append(r.Series.Pauses, int64(p-paused))
			r.Series.GoodputMbps = append(r.Series.GoodputMbps, mbps(b.total-arrived, period))
			paused, arrived = p, b.total
		}
		if progress != nil {
			if err := progress(min(now, b.end)-b.start, b.end-b.start); err != nil {
				return err
			}
		}
		if over && (b.open() == 0 || now >= b.start+total) {
			return nil
		}
	}
}

// mbps is the rate of so many bytes in a time, in 10^6 bit/s: terabytes too, whose product
// has more than 64 bits.
func mbps(bytes int64, d des.Time) int64 {
	hi, lo := bits.Mul64(uint64(bytes), uint64(8*des.Microsecond))
	v, _ := bits.Div64(hi, lo, uint64(d))
	return int64(v)
}

// open is how many measured messages are under way.
func (b *bench) open() (n int) {
	for _, t := range b.tallies {
		n += t.open
	}
	return n
}

// network counts what the network did.
func (b *bench) network(r *Run) {
	f := b.n.fabric()
	p, c := f.PortTotals(), f.Counts()
	r.count("pauses", p.PausesSent)
	r.count("paused_ns", uint64(p.Paused/des.Nanosecond))
	r.count("peak_queue_bytes", uint64(p.PeakQueueBytes))
	r.count("ecn_marks", p.Marked)
	sent, heard, resent := uint64(0), uint64(0), uint64(0)
	var wqes, pages fabric.CacheStats
	for i := range f.Hosts() {
		s, h := f.Host(i).Notifications()
		sent, heard = sent+s, heard+h
		resent += f.Host(i).Stats().Retransmits
		c := f.Host(i).Caches()
		wqes.Add(c.WQEs)
		pages.Add(c.Pages)
	}
	if b.s.NIC.WQECache.Entries > 0 {
		r.count("wqe_hits", wqes.Hits)
		r.count("wqe_misses", wqes.Misses)
	}
	if b.s.NIC.MTTCache.Entries > 0 {
		r.count("mtt_hits", pages.Hits)
		r.count("mtt_misses", pages.Misses)
	}
	r.count("cnps_sent", sent)
	r.count("cnps_received", heard)
	r.count("retransmitted_packets", resent)
	r.count("packets", c.Injected)
	r.count("dropped_packets", c.Dropped)
	r.count("lost_packets", c.Lost)
}

// class makes a class of messages.
func (b *bench) class(name string) *tally {
	t := &tally{name: name}
	b.tallies = append(b.tallies, t)
	return t
}

// now is the virtual time.
func (b *bench) now() des.Time { return b.k.Now() }

// at calls f at a time.
func (b *bench) at(t des.Time, f func()) { b.k.Call(t, f) }

// random is a stream of the run's own. Kinds of package fabric and cluster are lower.
func (b *bench) random(id uint64, purpose uint32) des.Stream {
	return des.NewStream(b.s.Seed, 1<<20, id, purpose)
}

// mark is a message, or what several make up, that has begun.
type mark struct {
	t        *tally
	at       des.Time
	measured bool
}

func (b *bench) begin(t *tally) mark {
	m := mark{t, b.now(), b.now() >= b.warm}
	if m.measured {
		t.open++
	}
	return m
}

// done ends it, with so many bytes of payload.
func (b *bench) done(m mark, bytes int) {
	if now := b.now(); now >= b.warm && now < b.end {
		m.t.ended++
		m.t.endedB += int64(bytes)
	}
	if m.measured {
		m.t.open--
		m.t.times = append(m.t.times, b.now()-m.at)
		m.t.bytes += int64(bytes)
	}
}

// fail ends it without success.
func (b *bench) fail(m mark) {
	if m.measured {
		m.t.open--
		m.t.failed++
	}
}

// received counts payload that an application received.
func (b *bench) received(bytes int) {
	if now := b.now(); now < b.end {
		b.total += int64(bytes)
		if now >= b.warm {
			b.arrived += int64(bytes)
		}
	}
}

// broke ends the run with an error of the load, which no scenario causes.
func (b *bench) broke(err error) {
	if b.err == nil && err != nil {
		b.err = err
	}
}

// marks are what is under way on a line, in order.
type marks struct{ list []mark }

func (m *marks) push(v mark) { m.list = append(m.list, v) }

func (m *marks) pop() mark {
	v := m.list[0]
	m.list = slices.Delete(m.list, 0, 1)
	return v
}

// Label names the job among those of its scenario.
func (j *Job) Label() string {
	if j.Point == nil {
		return j.Variant
	}
	return fmt.Sprintf("%s at %d", j.Variant, j.Point.Value)
}
