package psjob

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// Phases of a job in which something happens: a request is of the time before or after
// that if it ended before or began after, else it is of the time during.
const (
	before = iota
	during
	after
	phases
)

var phaseNames = [phases]string{"before", "during", "after"}

// Change is something that happens while a job runs.
type Change struct {
	After time.Duration // from the begin of the first turn that is measured
	Do    func(ctx context.Context) error
	What  string // it is, as "the change to 4 shards"

	phase       atomic.Int32
	timer       *time.Timer
	cancel      context.CancelFunc // of Do
	over        chan struct{}      // closed when Do is over
	err         error
	mu          sync.Mutex
	start, stop time.Time // of Do; zero: not yet
}

// begin sets the clock, once.
func (c *Change) begin(ctx context.Context) {
	if c.over != nil {
		return
	}
	c.over = make(chan struct{})
	ctx, c.cancel = context.WithCancel(ctx)
	c.timer = time.AfterFunc(c.After, func() {
		defer close(c.over)
		c.note(&c.start, during)
		c.err = c.Do(ctx)
		c.note(&c.stop, after)
	})
}

func (c *Change) note(at *time.Time, next int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*at = time.Now()
	c.phase.Store(next)
}

// Took tells how long it took; 0: it is not over.
func (c *Change) Took() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop.IsZero() {
		return 0
	}
	return c.stop.Sub(c.start)
}

// split adds the time between two moments to the phases.
func (c *Change) split(sum *[phases]time.Duration, from, to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, end := range [phases]time.Time{c.start, c.stop, to} {
		if end.IsZero() || end.After(to) {
			end = to
		}
		if end.After(from) {
			sum[i] += end.Sub(from)
			from = end
		}
	}
}

// end gives up what has begun, and has nothing begin any more.
func (c *Change) end() {
	if c.over == nil {
		return
	}
	c.cancel()
	if !c.timer.Stop() {
		<-c.over
	}
}

// phaseLatency is the latencies of an operation by phase.
type phaseLatency [phases]*hist.Recorder

func newPhaseLatency() *phaseLatency {
	p := new(phaseLatency)
	for i := range p {
		p[i] = hist.New()
	}
	return p
}

// record takes the latency of a request that was issued in a phase.
func (p *phaseLatency) record(c *Change, issued int32, d time.Duration) {
	if now := c.phase.Load(); now != issued {
		issued = during
	}
	p[issued].Record(d)
}

// Phases gives what was measured of an operation by phase; nil: nothing happens in the job.
func (d *Driver) Phases(op string) (list []*report.Sample) {
	s := d.sums[op]
	if s == nil || s.phases == nil {
		return nil
	}
	for i, lat := range s.phases {
		list = append(list, &report.Sample{Name: d.name, Op: op, Phase: phaseNames[i], Ops: lat.Count(), Wall: s.times[i], Latency: lat, Stopped: d.stop.Load()})
	}
	return list
}

// Changed tells whether the Change is over, and something was measured after it.
func (d *Driver) Changed() bool {
	for _, s := range d.sums {
		if s.phases == nil || s.phases[after].Count() == 0 {
			return false
		}
	}
	return len(d.sums) > 0
}

// changed is the error of the Change, if it has ended with one.
func (d *Driver) changed() error {
	if d.Change == nil || d.Change.phase.Load() != after {
		return nil
	}
	return errors.WithMessagef(d.Change.err, "over %s", d.name)
}
