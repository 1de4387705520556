package msgtest

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/counts"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/verbs"
)

// verdict is what an end measured, and found wrong.
type verdict struct {
	Mismatch string  `json:"mismatch,omitempty"`
	Ops      int64   `json:"ops"`     // as sender
	Seconds  float64 `json:"seconds"` // from the first message of all until the last was sent
	PeakBps  float64 `json:"peak_bytes_per_s"`
	Behind   float64 `json:"behind_s"` // that it went on to receive when the peer had sent the last
}

// Run measures every size over an agreed control connection; the client initiates.
// The end of soft lets the size that runs finish early and ends the run after it;
// ctx ends everything at once.
//
// It returns an error with exit status 4 when a message at either end was wrong.
func Run(soft, ctx context.Context, c *control.Conn, dev verbs.Device, p *Params, client bool, sink report.Sink) (err error) {
	s, err := openStation(dev, p)
	if err != nil {
		// The peer learns why instead of a closed connection.
		c.Fail(err)
		return err
	}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	if err := s.connect(ctx, c, p, client); err != nil {
		c.Fail(err)
		return err
	}
	defer busy(p.Busy)()
	for _, size := range p.Sizes {
		if limit := s.sockets[0].MaxMessage(); size > limit {
			return exit.Usagef("-s %d: a message has at most %d bytes between these two nodes", size, limit)
		}
		if err := warm(soft, ctx, c, p, s, client, size); err != nil {
			return err
		}
		r := &round{c: c, p: p, s: s, client: client, size: size}
		sample, err := r.measure(ctx, soft.Done(), sink)
		if sample != nil && sink.Sample != nil {
			if sinkErr := sink.Sample(sample); err == nil {
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

// warm has the memory of a size registered and mapped before it is measured.
func warm(soft, ctx context.Context, c *control.Conn, p *Params, s *station, client bool, size int) error {
	if p.Warm == 0 {
		return nil
	}
	few := *p
	few.Iters, few.Duration = p.Warm, 0
	_, err := (&round{c: c, p: &few, s: s, client: client, size: size}).measure(ctx, soft.Done(), report.Sink{})
	return err
}

// round is one message size at one end.
type round struct {
	c      *control.Conn
	p      *Params
	s      *station
	client bool
	size   int
	lines  []*line
	ledger *ledger
	stop   atomic.Bool
	told   atomic.Int64  // when the peer said that it had sent its last message, since the start
	behind time.Duration // verdict.Behind
}

// manyBytes is the size of all messages together from which a latency test makes do with
// a single buffer a socket.
const manyBytes = 256 << 20

// sends and receives tell what this end does in a bandwidth test.
func (r *round) sends() bool    { return r.client || r.p.Bidirectional }
func (r *round) receives() bool { return !r.client || r.p.Bidirectional }

func (r *round) measure(ctx context.Context, stop <-chan struct{}, sink report.Sink) (*report.Sample, error) {
	buffers := r.p.Depth
	if r.p.Latency {
		buffers = 2 // the first may not be back when the answer is here
		if r.size*r.p.Sockets > manyBytes {
			buffers = 1
		}
	}
	defer func() {
		for _, l := range r.lines {
			l.clear(ctx)
		}
	}()
	r.ledger = newLedger(r.p.Sockets)
	for i := range r.p.Sockets {
		l := r.newLine(i)
		r.lines = append(r.lines, l)
		if r.sends() || r.p.Latency {
			if err := l.stock(buffers); err != nil {
				r.c.Fail(err)
				return nil, err
			}
		}
	}
	queues := map[string]int64{}
	end := report.Poll(func(done, total int64) {
		counts.Peak(queues, r.s.queues())
		if sink.Progress != nil {
			sink.Progress(done, total)
		}
	}, r.progress)
	before := r.s.read()
	spent, peer, err := r.run(ctx, stop)
	end()
	if err != nil {
		return nil, err
	}
	counts.Peak(queues, r.s.queues()) // a short run may never have been looked at
	sample, err := r.sample(&spent, &peer)
	after := r.s.read()
	after.since(&before, sample)
	counts.Add(sample.Counters, queues)
	return sample, err
}

// run lets all lines work, and ends when both ends are done.
func (r *round) run(ctx context.Context, stop <-chan struct{}) (spent cost.Spent, peer verdict, err error) {
	finished, tell := context.WithCancel(ctx)
	defer tell()
	began := time.Now()
	r.ledger.start(began, r.size, r.p.Sockets*r.p.Depth)
	s := r.c.Begin(ctx, func(body json.RawMessage) error {
		var sent []int64
		if err := json.Unmarshal(body, &sent); err != nil {
			return errors.Wrap(err, "message")
		}
		if len(sent) != len(r.lines) {
			return errors.Errorf("%d counts for %d sockets", len(sent), len(r.lines))
		}
		for i, l := range r.lines {
			l.target.Store(sent[i])
		}
		r.told.Store(int64(time.Since(began)))
		tell()
		return nil
	})
	defer func() { s.End(err) }()
	// Waits end with the session too.
	defer context.AfterFunc(s.Context(), tell)()

	senders, receivers := make(chan error, len(r.lines)), make(chan error, len(r.lines))
	meter := cost.Start()
	left := 0
	for _, l := range r.lines {
		if r.p.Latency {
			left++
			if r.client {
				go func() { senders <- l.ping(s.Context()) }()
			} else {
				go func() { receivers <- l.pong(s.Context(), finished) }()
			}
			continue
		}
		if r.sends() {
			left++
			go func() { senders <- l.send(s.Context()) }()
		}
		if r.receives() {
			left++
			go func() { receivers <- l.receive(s.Context(), finished, r.c.Limit()) }()
		}
	}
	sending := len(r.lines)
	if !r.sends() || r.p.Latency && !r.client {
		sending = 0
	}
	for told := false; ; {
		if sending == 0 && !told && err == nil {
			spent, told = meter.Since(), true
			err = s.Finished(r.counts())
		}
		if left == 0 {
			break
		}
		var e error
		select {
		case e = <-senders:
			left--
			sending--
		case e = <-receivers:
			left--
		case <-stop:
			stop = nil
			r.stop.Store(true)
		}
		if e != nil && err == nil {
			err = s.Cause(e)
			s.GiveUp(err)
		}
	}
	if err != nil {
		return spent, peer, err
	}
	if r.told.Load() > 0 {
		r.behind = time.Since(began) - time.Duration(r.told.Load())
	}
	err = s.Conclude(func() any { return r.verdict() }, &peer)
	whole := meter.Since() // with what receivers still had to do
	spent.CPU, spent.Wall = whole.CPU, whole.Wall
	return spent, peer, err
}

// counts tells how many messages each line sent. An end that only answers has no
// number of its own, and says so before it has sent any.
func (r *round) counts() []int64 {
	n := make([]int64, len(r.lines))
	if r.p.Latency && !r.client {
		return n
	}
	for i, l := range r.lines {
		n[i] = l.sent
	}
	return n
}

func (r *round) verdict() (v verdict) {
	v.Behind, v.PeakBps = r.behind.Seconds(), r.ledger.peak.Bps()
	first, last := r.lines[0].began, r.lines[0].ended
	for _, l := range r.lines {
		if l.began.Before(first) {
			first = l.began
		}
		if l.ended.After(last) {
			last = l.ended
		}
		if v.Mismatch == "" {
			v.Mismatch = l.bad
		}
		v.Ops += l.ops.Load()
	}
	v.Seconds = last.Sub(first).Seconds()
	return v
}

func (r *round) progress() (done, total int64) {
	for _, l := range r.lines {
		done += l.ops.Load()
	}
	if r.p.Duration == 0 {
		total = int64(r.p.Iters) * int64(len(r.lines))
	}
	return done, total
}

// sample puts the results together.
func (r *round) sample(spent *cost.Spent, peer *verdict) (*report.Sample, error) {
	mine := r.verdict()
	if !r.p.Latency { // what was sent has to arrive
		mine.Seconds += peer.Behind
		peer.Seconds += mine.Behind
	}
	s := &report.Sample{
		Name: r.p.Transport, SizeBytes: r.size, Sockets: r.p.Sockets, Ops: mine.Ops, Wall: time.Duration(mine.Seconds * float64(time.Second)), Spent: spent,
		Halved: r.p.Latency, Bars: r.p.Histogram, Latency: r.ledger.latency(),
	}
	for _, l := range r.lines {
		s.Stopped = s.Stopped || l.stopped
	}
	if !r.p.Latency {
		if r.p.Bidirectional {
			s.Ops += peer.Ops
			s.Wall = max(s.Wall, time.Duration(peer.Seconds*float64(time.Second)))
			mine.PeakBps += peer.PeakBps
		}
		s.Bytes = s.Ops * int64(r.size)
		if s.PeakBps = mine.PeakBps; s.Wall > 0 { // a short run has no window but the whole
			s.PeakBps = max(s.PeakBps, float64(s.Bytes)/s.Wall.Seconds())
		}
	}
	s.Fairness = r.fairness()
	s.Moved = s.Bytes
	if r.p.Latency {
		s.Moved = 2 * s.Ops * int64(r.size)
	}
	if r.p.Verify {
		good := mine.Mismatch == "" && peer.Mismatch == ""
		s.Verified = &good
	}
	switch {
	case mine.Mismatch != "":
		return s, exit.Mismatchf("msg %d bytes: data mismatch at this end: %s", r.size, mine.Mismatch)
	case peer.Mismatch != "":
		return s, exit.Mismatchf("msg %d bytes: data mismatch at the peer: %s", r.size, control.Printable(peer.Mismatch))
	}
	return s, nil
}

// fairness is Jain's index of what the sockets of this end have sent, each divided by
// its weight: 1 is all alike. It is 0, for not measured, where a number of messages was
// given, one socket is alone, or messages go back and forth.
func (r *round) fairness() float64 {
	if r.p.Duration == 0 || len(r.lines) < 2 || r.p.Latency {
		return 0
	}
	var sum, squares float64
	for i, l := range r.lines {
		x := float64(l.ops.Load()) / float64(r.p.weight(i))
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(r.lines)) * squares)
}
