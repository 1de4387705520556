package verbtest

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/perftest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/verbs"
)

// cacheLine is the length in bytes that we tell perftest; it uses the greater of
// both ends'.
const cacheLine = 64

// farewell is how long our work may go on after a peer closed its connection:
// ib_write_lat closes it as soon as it has the last message.
const farewell = time.Second

// Foreign tells perftest's program for the parameters: ib_send_bw and so on.
func (p *Params) Foreign() perftest.Test {
	return perftest.Test{OneSided: p.Op != Send, Write: p.Op == Write, Latency: p.Latency}
}

// RunPerftest measures every size with a program of perftest at the other end, after
// the exchange of versions. The end of soft lets a run that only we drive finish early
// and breaks any other off; ctx ends everything at once.
func RunPerftest(soft, ctx context.Context, c *perftest.Conn, dev verbs.Device, p *Params, sink report.Sink) (err error) {
	r, err := openRig(dev, p)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := r.close(); err == nil {
			err = closeErr
		}
	}()
	agreed, err := c.Agree(perftest.Host{PageBytes: os.Getpagesize(), CacheLineBytes: cacheLine, MTU: r.mtu})
	if err != nil {
		return err
	}
	r.mtu = agreed.MTU
	own := *p
	own.foreign, own.page = true, agreed.PageBytes
	x := &foreign{round: round{p: &own, r: r}, c: c, test: own.Foreign()}
	defer func() {
		if closeErr := x.close(); err == nil {
			err = closeErr
		}
	}()
	if err := x.connect(); err != nil {
		return err
	}
	var last *report.Sample
	for i, size := range own.Sizes {
		if last, err = x.measure(soft, ctx, size, sink); err != nil {
			return err
		}
		if sink.Sample != nil {
			if err := sink.Sample(last); err != nil {
				return err
			}
		}
		if x.test.AfterEachSize() && len(own.Sizes) > 1 {
			if err := c.Barrier("end"); err != nil {
				return err
			}
		}
		if last.Stopped && i < len(own.Sizes)-1 {
			return control.ErrInterrupted
		}
	}
	return x.finish(last)
}

// foreign is our end of a test with perftest: the queue pairs and the memory of all
// sizes.
type foreign struct {
	round
	c    *perftest.Conn
	test perftest.Test
}

// connect makes flows and takes their queue pairs to RTS.
func (x *foreign) connect() error {
	p, r := x.p, x.r
	initiator := x.c.Client() != x.test.ServerFirst()
	var lanes []*lane
	for i := range p.Threads {
		n := (p.QPs + p.Threads - 1 - i%p.Threads) / p.Threads
		f, err := newFlow(r, p, i, initiator, n, p.Sizes[0])
		if f != nil {
			x.flows = append(x.flows, f)
		}
		if err != nil {
			return err
		}
		lanes = append(lanes, f.lanes...)
	}
	mine := r.endpoint()
	reads := 1 // as perftest has it for what needs none
	if p.Op == Read || p.Op == Atomic {
		reads = min(mine.MaxReads, mine.MaxDestReads, 255)
		if p.Outs > 0 {
			reads = min(reads, p.Outs)
		}
	}
	mine.MaxReads, mine.MaxDestReads = reads, reads
	keys := make([]perftest.Key, len(lanes))
	for i, l := range lanes {
		end := l.end(x.flows[0])
		keys[i] = perftest.Key{
			LID: r.port.LID, Reads: uint16(reads), Num: end.Num, PSN: end.PSN, RKey: end.RKey, Addr: end.Addr,
			Global: p.GIDIndex >= 0 || r.port.LinkLayer != verbs.LinkInfiniBand, GID: r.gid.GID,
		}
	}
	return x.c.Connect(x.test, keys, func(peer []perftest.Key) error {
		for i, l := range lanes {
			k := &peer[i]
			l.remote = qpEnd{Num: k.Num, PSN: k.PSN, Addr: k.Addr, RKey: k.RKey}
			// The peer has as many READs under way as we said, and takes as many
			// as it said.
			end := endpoint{LID: k.LID, MTUBytes: r.mtu.Bytes(), MaxReads: reads, MaxDestReads: int(k.Reads)}
			if k.Global {
				end.GID = k.GID
			}
			if err := l.connect(r, p, &mine, &end); err != nil {
				return err
			}
		}
		return nil
	})
}

// measure runs one size.
func (x *foreign) measure(soft, ctx context.Context, size int, sink report.Sink) (*report.Sample, error) {
	for _, f := range x.flows {
		f.restart(size)
		if err := f.postFirst(); err != nil {
			return nil, err
		}
	}
	if x.test.EachSize() {
		if err := x.c.Barrier("begin"); err != nil {
			return nil, err
		}
	}
	defer report.Poll(sink.Progress, x.progress)()
	spent, err := x.run(soft, ctx)
	if err != nil {
		return nil, err
	}
	p := x.p
	s := &report.Sample{
		Name: p.Op.String(), SizeBytes: size, Spent: &spent, Halved: p.Latency && p.Op.pingPong(), Bars: p.Histogram, Latency: hist.New(),
		Counters: x.counters(),
	}
	for _, f := range x.flows {
		if f.bad != "" {
			return nil, errors.Errorf("%s: start both ends with the same -s", f.bad)
		}
		s.Ops += f.ops.Load()
		s.Wall = max(s.Wall, f.wall)
		s.Stopped = s.Stopped || f.stopped
		s.Latency.Merge(f.lat)
		if !p.NoPeak && !p.Latency {
			s.PeakBps += f.peak.Bps()
		}
	}
	if !p.Latency {
		s.Bytes = s.Ops * int64(size)
	}
	return s, nil
}

// restart makes the flow ready for another size.
func (f *flow) restart(size int) {
	f.lay, f.lat = f.p.layout(size), hist.New()
	f.late, f.stopped = false, false
	f.doorbells, f.requests, f.completions = 0, 0, 0
	if f.alarm != nil {
		f.alarm.Stop()
	}
	f.ops.Store(0)
	f.done.Store(false)
	for _, l := range f.lanes {
		l.posted, l.signaled, l.completed, l.received, l.reposted = 0, 0, 0, 0, 0
	}
	// The number of messages is no secret here, but when they must have come is not
	// known before the peer says that it is done.
	f.due.Store(math.MaxInt64)
	f.target.Store(nil)
	if !f.initiator && !f.p.Foreign().Alone() {
		counts := f.foreignCounts()
		f.target.Store(&counts)
	}
}

// foreignCounts is how many messages come on each lane.
func (f *flow) foreignCounts() []int64 {
	n := make([]int64, len(f.lanes))
	for i := range n {
		n[i] = int64(f.p.Iters)
	}
	return n
}

// run lets all flows work until they are done, watching the peer.
func (x *foreign) run(soft, ctx context.Context) (spent cost.Spent, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	meter := cost.Start()
	ended := make(chan error, len(x.flows))
	for _, f := range x.flows {
		f.ctx = ctx
		go func() { ended <- f.run() }()
	}
	news, stop := x.c.Watch("run")
	defer stop()
	var gone error // the peer's end
	var late <-chan time.Time
	stall := newStall(x.c.Limit())
	defer stall.stop()
	interrupt := soft.Done()
	giveUp := func(why error) {
		if err == nil {
			err = why
		}
		cancel()
		for _, f := range x.flows {
			f.abort.Store(true)
			f.wake()
		}
	}
	for left := len(x.flows); left > 0; {
		select {
		case e := <-ended:
			left--
			if e != nil && gone != nil {
				e = gone
			}
			if e != nil {
				giveUp(x.explain(e))
			}
		case e := <-news:
			if news = nil; e != nil {
				gone, late = e, time.After(farewell)
				break
			}
			for _, f := range x.flows {
				if !f.initiator {
					f.expect(f.foreignCounts(), x.c.Limit())
				}
			}
		case <-late:
			giveUp(gone)
		case <-stall.tick:
			if !x.waits() && !stall.moved(x.moved()) {
				giveUp(&control.StepError{Step: "run", Peer: x.c.Peer(),
					Err: errors.WithMessagef(control.ErrTimeout, "no message went through for %v (--timeout)", x.c.Limit())})
			}
		case <-interrupt:
			interrupt = nil
			if !x.test.Alone() {
				giveUp(control.ErrInterrupted)
				break
			}
			for _, f := range x.flows {
				f.stop.Store(true)
				f.wake()
			}
			if x.waits() {
				giveUp(control.ErrInterrupted)
			}
		case <-ctx.Done():
			giveUp(context.Cause(ctx))
			ctx = context.WithoutCancel(ctx)
		}
	}
	return meter.Since(), err
}

// waits reports an end that only lets the peer reach its memory.
func (x *foreign) waits() bool {
	return !x.flows[0].initiator && x.test.Alone()
}

// moved counts what went through.
func (x *foreign) moved() (n int64) {
	for _, f := range x.flows {
		n += f.ops.Load()
	}
	return n
}

// explain puts what a peer with other options leads to into words.
func (x *foreign) explain(err error) error {
	if errors.Is(err, errMissing) {
		return errors.Errorf("step run with %s: the peer is done after %d messages of %d: start both ends with the same -n",
			x.c.Peer(), x.moved(), int64(x.p.Iters)*int64(x.p.QPs))
	}
	return err
}

// finish ends the exchange.
func (x *foreign) finish(s *report.Sample) error {
	if x.test.Reports() {
		if err := x.c.Barrier("end"); err != nil {
			return err
		}
		if _, err := x.c.Report(perftestReport(s)); err != nil {
			return err
		}
	}
	if x.test.Closes() {
		return x.c.Goodbye()
	}
	if !x.c.Client() {
		x.c.Linger() // the client may still want our acknowledgement
	}
	return nil
}

// perftestReport puts a sample into perftest's units.
func perftestReport(s *report.Sample) perftest.Report {
	r := perftest.Report{SizeBytes: uint64(s.SizeBytes), Iters: uint64(s.Ops), Peak: s.PeakBps / (1 << 20)}
	if sec := s.Wall.Seconds(); sec > 0 {
		r.Average = float64(s.Bytes) / sec / (1 << 20)
		r.MsgRate = float64(s.Ops) / sec / 1e6
	}
	return r
}

// stall notices that nothing goes through for a time.
type stall struct {
	tick  <-chan time.Time
	stop  func()
	seen  int64
	quiet int
}

// stallTicks is how many times in the limit we look.
const stallTicks = 4

func newStall(limit time.Duration) *stall {
	t := time.NewTicker(limit / stallTicks)
	return &stall{tick: t.C, stop: t.Stop, seen: -1}
}

// moved takes the present count; false when it has been the same all the time.
func (s *stall) moved(n int64) bool {
	if n != s.seen {
		s.seen, s.quiet = n, 0
		return true
	}
	s.quiet++
	return s.quiet < stallTicks
}
