package verbtest

import (
	"context"
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/verbs"
)

// Run measures every size over an agreed control connection. client tells the
// role: the client initiates. The end of soft lets the round that runs finish
// early and ends the run after it; ctx ends everything at once.
//
// It returns an error with exit status 4 when bytes at either end were wrong.
func Run(soft, ctx context.Context, c *control.Conn, dev verbs.Device, p *Params, client bool, sink report.Sink) (err error) {
	r, err := openRig(dev, p)
	if err != nil {
		// The peer learns why instead of a closed connection.
		c.Fail(err)
		return err
	}
	defer func() {
		if closeErr := r.close(); err == nil {
			err = closeErr
		}
	}()
	for _, size := range p.Sizes {
		s, err := measure(soft, ctx, c, r, p, client, size, sink)
		if s != nil && sink.Sample != nil {
			if sinkErr := sink.Sample(s); err == nil {
				err = sinkErr
			}
		}
		if err != nil {
			return err
		}
		if err := c.AgreeToGoOn(soft.Err() == nil); err != nil {
			return err
		}
	}
	return nil
}

// measure runs one round.
func measure(soft, ctx context.Context, c *control.Conn, r *rig, p *Params, client bool, size int, sink report.Sink) (_ *report.Sample, err error) {
	rd, err := newRound(ctx, c, r, p, client, size)
	if err != nil {
		c.Fail(err)
		return nil, err
	}
	defer func() {
		if closeErr := rd.close(); err == nil {
			err = closeErr
		}
	}()
	defer report.Poll(sink.Progress, rd.progress)()
	spent, peer, err := rd.run(ctx, soft.Done())
	if err != nil {
		return nil, err
	}
	mine := rd.verdict()
	s := &report.Sample{
		Name: p.Op.String(), SizeBytes: size, Ops: mine.Ops, Wall: time.Duration(mine.Seconds * float64(time.Second)), PeakBps: mine.PeakBps,
		Spent: &spent, Halved: p.Latency && p.Op.pingPong(), Bars: p.Histogram, Counters: rd.counters(),
	}
	if p.Bidirectional {
		s.Ops += peer.Ops
		s.PeakBps += peer.PeakBps
		s.Wall = max(s.Wall, time.Duration(peer.Seconds*float64(time.Second)))
	}
	if p.NoPeak || p.Latency {
		s.PeakBps = 0
	}
	if !p.Latency {
		s.Bytes = s.Ops * int64(size)
	}
	lat := hist.New()
	for _, f := range rd.flows {
		if f.initiator {
			lat.Merge(f.lat)
			s.Stopped = s.Stopped || f.stopped
		}
	}
	s.Latency = lat
	if p.Verify {
		good := mine.Mismatch == "" && peer.Mismatch == ""
		s.Verified = &good
	}
	switch {
	case mine.Mismatch != "":
		return s, exit.Mismatchf("%s %d bytes: data mismatch at this end: %s", p.Op, size, mine.Mismatch)
	case peer.Mismatch != "":
		return s, exit.Mismatchf("%s %d bytes: data mismatch at the peer: %s", p.Op, size, control.Printable(peer.Mismatch))
	}
	return s, nil
}

// counters are those of this end's flows.
func (rd *round) counters() map[string]int64 {
	sum := map[string]int64{"doorbells": 0, "requests": 0, "completions": 0}
	for _, f := range rd.flows {
		sum["doorbells"] += f.doorbells
		sum["requests"] += f.requests
		sum["completions"] += f.completions
	}
	return sum
}

// progress is how far our initiators are.
func (rd *round) progress() (done, total int64) {
	for _, f := range rd.flows {
		if f.initiator {
			done += f.ops.Load()
			total += int64(rd.p.Iters) * int64(len(f.lanes))
		}
	}
	if rd.p.Duration > 0 {
		total = 0
	}
	return done, total
}
