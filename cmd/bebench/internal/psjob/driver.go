package psjob

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/counts"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/ps"
)

// Driver runs the workers of a job over one transport and sums what they measure.
// Its methods belong to one goroutine, except Stop and Abort.
type Driver struct {
	cfg     *Config
	name    string // "be" or "tcp"
	stream  []uint64
	truth   *truth
	workers []*worker
	closers []func() error
	stop    atomic.Bool
	slice   int
	warm    bool

	// Counters of what is below, for the rows; nil: none. Set before the first Turn.
	Counters func() map[string]int64
	// Change happens while the job runs; nil: nothing does. Set before the first Turn.
	Change *Change

	sums     map[string]*sum
	verified int64 // rows
	wrong    error
}

// sum is what was measured of one operation.
type sum struct {
	lat   *hist.Recorder
	ops   int64
	bytes int64
	spent cost.Spent
	count map[string]int64
	// phases are set if there is a Change.
	phases *phaseLatency
	times  [phases]time.Duration
	failed int64 // requests
}

// NewDriver connects the workers to the shards at addrs. name goes into the rows.
func NewDriver(ctx context.Context, cfg *Config, name string, open Open, addrs []string, stream []uint64) (*Driver, error) {
	return newDriver(cfg, name, stream, func() (*ps.Client, []func() error, error) {
		transport, closeTransport, err := open()
		if err != nil {
			return nil, nil, err
		}
		client, err := ps.Dial(ctx, transport, cfg.Dim, addrs)
		if err != nil {
			_ = closeTransport()
			return nil, nil, err
		}
		return client, []func() error{closeTransport, client.Close}, nil
	})
}

// NewMapDriver has the workers reach a table of replicas, of which all are known.
func NewMapDriver(cfg *Config, over Over, all []At, stream []uint64) (*Driver, error) {
	return newDriver(cfg, over.Name, stream, func() (*ps.Client, []func() error, error) { return over.connect(cfg, cfg.Map(all, cfg.Shards)) })
}

// newDriver makes a driver whose workers get their clients, and what closes them, from
// connect.
func newDriver(cfg *Config, name string, stream []uint64, connect func() (*ps.Client, []func() error, error)) (_ *Driver, err error) {
	d := &Driver{cfg: cfg, name: name, stream: stream, truth: newTruth(cfg, stream), sums: map[string]*sum{}}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	for i := range cfg.Workers {
		client, closers, err := connect()
		if err != nil {
			return nil, errors.WithMessagef(err, "worker %d over %s", i, name)
		}
		d.closers = append(d.closers, closers...)
		d.workers = append(d.workers, newWorker(d, i, client))
	}
	return d, nil
}

// Close ends the connections.
func (d *Driver) Close() error {
	if d.Change != nil {
		d.Change.end()
	}
	return closeAll(&d.closers)
}

// Stop makes the slice that runs issue nothing more. Any goroutine may call it.
func (d *Driver) Stop() { d.stop.Store(true) }

// Abort ends the connections under the slice that runs: what is outstanding fails.
// Any goroutine may call it; Close is still due.
func (d *Driver) Abort() {
	d.Stop()
	for _, w := range d.workers {
		_ = w.client.Close()
	}
}

// Turn runs the next slice of fetches and, in training, one of pushes to the same
// rows, each of at most so many requests unless atMost is 0. The same turn of two
// drivers with the same Config asks for the same. An error has exit status 4 when
// a value was wrong.
func (d *Driver) Turn(ctx context.Context, atMost int) error {
	if d.Change != nil && d.warm {
		d.Change.begin(ctx)
	}
	for i, w := range d.workers {
		list := d.cfg.requests(len(d.stream), d.slice, i)
		if share := (atMost + len(d.workers) - 1 - i) / len(d.workers); atMost > 0 && share < len(list) {
			list = list[:share]
		}
		w.prepare(list)
	}
	d.slice++
	if err := d.measure(ctx, OpFetch); err != nil {
		return err
	}
	if d.cfg.Workload != Training || d.stop.Load() {
		return nil
	}
	if err := d.measure(ctx, OpPush); err != nil {
		return err
	}
	for _, w := range d.workers {
		w.book()
	}
	return nil
}

// measure runs the workers' lists once.
func (d *Driver) measure(ctx context.Context, op string) error {
	recs := make([]*hist.Recorder, len(d.workers))
	for i, w := range d.workers {
		recs[i] = hist.New()
		w.issued, w.failed, w.err = 0, 0, nil
		if w.phases = nil; d.Change != nil && d.warm {
			w.phases = newPhaseLatency()
		}
	}
	var running sync.WaitGroup
	start := make(chan struct{})
	for i, w := range d.workers {
		running.Go(func() {
			<-start
			w.run(op, recs[i])
		})
	}
	before := d.counters()
	meter, began := cost.Start(), time.Now()
	close(start)
	running.Wait()
	spent := meter.Since()

	s := d.sums[op]
	if s == nil {
		s = &sum{lat: hist.New(), count: map[string]int64{}}
		d.sums[op] = s
	}
	s.spent = s.spent.Add(spent)
	if d.Change != nil {
		d.Change.split(&s.times, began, began.Add(spent.Wall))
	}
	counts.Add(s.count, counts.Since(d.counters(), before))
	var failed error
	for i, w := range d.workers {
		s.lat.Merge(recs[i])
		s.ops += int64(w.issued)
		s.failed += int64(w.failed)
		if w.phases != nil {
			if s.phases == nil {
				s.phases = newPhaseLatency()
			}
			for i, lat := range w.phases {
				s.phases[i].Merge(lat)
			}
		}
		for _, r := range w.list[:w.issued] {
			s.bytes += int64(r.n * d.cfg.rowBytes())
		}
		if w.err != nil && failed == nil {
			failed = errors.WithMessagef(w.err, "%s over %s", op, d.name)
		}
	}
	if op == OpFetch {
		if err := d.settle(ctx); failed == nil {
			failed = err
		}
	}
	if failed == nil {
		failed = d.changed()
	}
	return failed
}

func (d *Driver) counters() map[string]int64 {
	if d.Counters == nil {
		return nil
	}
	return d.Counters()
}

// settle verifies and releases what the workers hold, in parallel.
func (d *Driver) settle(ctx context.Context) error {
	errs := make([]error, len(d.workers))
	rows := make([]int64, len(d.workers))
	var running sync.WaitGroup
	for i, w := range d.workers {
		running.Go(func() { rows[i], errs[i] = w.settle(ctx) })
	}
	running.Wait()
	for i, err := range errs {
		d.verified += rows[i]
		if err != nil && d.wrong == nil {
			d.wrong = exit.Mismatchf("data mismatch: fetch over %s: %w", d.name, err)
		}
	}
	return d.wrong
}

// ReadBack fetches every row that training may have pushed to and compares it. It
// is not measured.
func (d *Driver) ReadBack(ctx context.Context) error {
	if d.cfg.Workload != Training || !d.cfg.Verify || d.wrong != nil {
		return nil
	}
	client := d.workers[0].client
	batch := max(1, d.cfg.MaxBytes/d.cfg.rowBytes())
	for keys := d.truth.keys; len(keys) > 0; {
		n := min(batch, len(keys))
		rows, err := client.Fetch(ctx, keys[:n])
		if err != nil {
			return errors.WithMessagef(err, "read-back over %s", d.name)
		}
		for i, key := range keys[:n] {
			if err = d.truth.check(key, rows.Row(i)); err != nil {
				break
			}
		}
		rows.Release()
		if err != nil {
			d.wrong = exit.Mismatchf("data mismatch: read-back over %s: %w", d.name, err)
			return d.wrong
		}
		d.verified += int64(n)
		keys = keys[n:]
	}
	return nil
}

// Warm runs one turn whose measurements are forgotten: memory is registered and
// touched for the first time there. atMost is as for Turn.
func (d *Driver) Warm(ctx context.Context, atMost int) error {
	err := d.Turn(ctx, atMost)
	d.sums, d.warm = map[string]*sum{}, true
	return err
}

// Verified is the number of rows that were compared, value by value.
func (d *Driver) Verified() int64 { return d.verified }

// Ops is the number of requests of each operation so far.
func (d *Driver) Ops() int64 {
	if s := d.sums[OpFetch]; s != nil {
		return s.ops
	}
	return 0
}

// Measured is the wall time of all slices so far.
func (d *Driver) Measured() (sum time.Duration) {
	for _, s := range d.sums {
		sum += s.spent.Wall
	}
	return sum
}

// Samples gives what was measured, fetch before push.
func (d *Driver) Samples() []*report.Sample {
	var samples []*report.Sample
	for _, op := range []string{OpFetch, OpPush} {
		s := d.sums[op]
		if s == nil {
			continue
		}
		sample := &report.Sample{
			Name: d.name, Op: op, Ops: s.ops, Bytes: s.bytes, Wall: s.spent.Wall, Latency: s.lat, Spent: &s.spent, Stopped: d.stop.Load(),
		}
		if d.Counters != nil {
			sample.Counters = s.count
		}
		if d.cfg.Replicas > 0 {
			s.count["failed_requests"] = s.failed
			sample.Counters = s.count
		}
		if d.cfg.Verify {
			good := d.wrong == nil
			sample.Verified = &good
		}
		samples = append(samples, sample)
	}
	return samples
}

// Local is a whole job in this process: shards and workers.
type Local struct {
	*Driver
	shards   interface{ Close() error }
	Replicas *Replicas // nil: there are none
}

// StartLocal runs the shards of the job in this process and connects a driver.
func StartLocal(ctx context.Context, cfg *Config, name string, open Open, stream []uint64) (*Local, error) {
	shards, err := StartShards(ctx, cfg, open, "127.0.0.1", Distinct(stream), func(int) bool { return true })
	if err != nil {
		return nil, err
	}
	d, err := NewDriver(ctx, cfg, name, open, shards.Addrs, stream)
	return local(d, shards, nil, err)
}

// StartLocalReplicas is StartLocal with the replicas of a table, which have so long to
// come up.
func StartLocalReplicas(ctx context.Context, wait time.Duration, cfg *Config, over Over, stream []uint64) (*Local, error) {
	replicas, err := Listen(cfg, over, "127.0.0.1", func(int, int) bool { return true })
	if err != nil {
		return nil, err
	}
	var d *Driver
	if err = replicas.Serve(ctx, wait, replicas.At(), Distinct(stream)); err == nil {
		d, err = NewMapDriver(cfg, over, replicas.At(), stream)
	}
	return local(d, replicas, replicas, err)
}

func local(d *Driver, shards interface{ Close() error }, replicas *Replicas, err error) (*Local, error) {
	if err != nil {
		_ = shards.Close()
		return nil, err
	}
	return &Local{d, shards, replicas}, nil
}

// Close ends the workers, then the shards.
func (l *Local) Close() error {
	err := l.Driver.Close()
	if shardErr := l.shards.Close(); err == nil {
		err = shardErr
	}
	return err
}
