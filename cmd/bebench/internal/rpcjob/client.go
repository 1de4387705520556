package rpcjob

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/pattern"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// The operations.
const (
	OpEcho   = "echo"
	OpStream = "stream"
)

// Params are one measurement.
type Params struct {
	Size        int // bytes of each message, at least 8
	Outstanding int // callers, each of which waits for its call; or streams
	Calls       int // in all; 0: by Duration
	Duration    time.Duration
	Workers     bool // the handler runs on the server's workers
	Stream      bool // messages of streams
	Window      int  // of each stream, in bytes; 0: archon's default
	Verify      bool // compare every byte
}

// warm is calls of each caller before they are measured.
const warm = 200

// Client makes the calls of measurements, over one connection or a channel.
type Client struct {
	c    *archon.Client
	ch   *channel.Channel // nil: c
	stop atomic.Bool
}

// OverChannel makes a client that calls by a channel, which is its own from here on.
func OverChannel(ch *channel.Channel) *Client { return &Client{ch: ch} }

// Dial connects to a server.
func Dial(ctx context.Context, t archon.Transport, addr string) (*Client, error) {
	c, err := archon.Dial(ctx, t, addr, "bench", archon.ClientConfig{})
	if err != nil {
		return nil, err
	}
	return &Client{c: c}, nil
}

// Close ends the connection.
func (c *Client) Close() error {
	if c.ch != nil {
		return c.ch.Close()
	}
	err := c.c.Close()
	<-c.c.Done()
	return err
}

// Stop makes the measurement that runs, and all later ones, end early. Any goroutine may
// call it.
func (c *Client) Stop() { c.stop.Store(true) }

// Measure makes one measurement; name goes into the sample.
func (c *Client) Measure(ctx context.Context, name string, p *Params) (*report.Sample, error) {
	m := &measurement{c: c, p: p, each: c.echo, latencies: make([]*hist.Recorder, p.Outstanding)}
	for i := range m.latencies {
		m.latencies[i] = hist.New()
	}
	op := OpEcho
	if p.Stream {
		m.each, op = c.stream, OpStream
	}
	if p.Verify && !p.Stream {
		m.want = make([]byte, p.Size)
		pattern.Fill(m.want, pattern.Seed(uint64(p.Size)))
	}
	m.left.Store(int64(min(warm*p.Outstanding, max(p.Outstanding, (64<<20)/p.Size))))
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	m.start(p)
	meter := cost.Start()
	err := m.run(ctx)
	spent := meter.Since()
	if m.timer != nil {
		m.timer.Stop()
	}
	if err != nil {
		return nil, err
	}
	verified := true
	s := &report.Sample{
		Name: name, Op: op, SizeBytes: p.Size, Outstanding: p.Outstanding, Ops: m.done.Load(), Bytes: m.done.Load() * int64(p.Size),
		Wall: spent.Wall, Latency: m.latency(), Spent: &spent, Verified: &verified, Stopped: c.stop.Load(),
	}
	if p.Stream {
		s.Latency = nil
	}
	return s, nil
}

// measurement is callers that share a number of calls, or a time.
type measurement struct {
	c     *Client
	p     *Params
	want  []byte
	each  func(ctx context.Context, m *measurement, lat *hist.Recorder) error
	left  atomic.Int64
	done  atomic.Int64
	over  atomic.Bool
	timer *time.Timer

	latencies []*hist.Recorder // of the callers
}

// latency is that of all callers.
func (m *measurement) latency() *hist.Recorder {
	all := hist.New()
	for _, l := range m.latencies {
		all.Merge(l)
	}
	return all
}

// start readies m for the part that is measured.
func (m *measurement) start(p *Params) {
	for _, l := range m.latencies {
		l.Reset()
	}
	m.done.Store(0)
	m.over.Store(false)
	m.left.Store(int64(p.Calls))
	if p.Calls == 0 {
		m.left.Store(1 << 60)
		m.timer = time.AfterFunc(p.Duration, func() { m.over.Store(true) })
	}
}

func (m *measurement) run(ctx context.Context) error {
	errs := make([]error, m.p.Outstanding)
	var callers sync.WaitGroup
	for i := range errs {
		callers.Go(func() {
			if errs[i] = m.each(ctx, m, m.latencies[i]); errs[i] != nil {
				m.over.Store(true)
			}
		})
	}
	callers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// next claims a message, and gives its number; false when there are enough.
func (m *measurement) next() (n uint64, ok bool) {
	if m.over.Load() || m.c.stop.Load() {
		return 0, false
	}
	left := m.left.Add(-1)
	return uint64(left), left >= 0
}

// echo makes calls one after another.
func (c *Client) echo(ctx context.Context, m *measurement, lat *hist.Recorder) error {
	method := methodEcho
	if m.p.Workers {
		method = methodWorker
	}
	call := &stamped{size: m.p.Size, want: m.want}
	inv := archon.Invocation{Method: method, Request: call}
	for {
		n, ok := m.next()
		if !ok {
			return nil
		}
		at := time.Now()
		call.n = n
		var resp archon.Response
		var err error
		if c.ch != nil {
			resp, err = c.ch.Do(ctx, &inv)
		} else {
			resp, err = c.call(ctx, method, call)
		}
		if err != nil {
			return err
		}
		lat.Record(time.Since(at))
		err = checkStamp(resp.Payload(), m.p.Size, n, m.want)
		resp.Release()
		if err != nil {
			return err
		}
		m.done.Add(1)
	}
}

// call makes a call over the connection, with the request in its memory.
func (c *Client) call(ctx context.Context, method archon.Method, call *stamped) (archon.Response, error) {
	req, err := c.c.Alloc(call.size)
	if err != nil {
		return archon.Response{}, err
	}
	call.fill(req.Payload())
	return c.c.Call(ctx, method, req)
}

// stream receives the messages of one stream.
func (c *Client) stream(ctx context.Context, m *measurement, _ *hist.Recorder) error {
	req := binary.LittleEndian.AppendUint64(nil, 1<<62)
	req = binary.LittleEndian.AppendUint32(req, uint32(m.p.Size))
	s, err := c.c.Open(ctx, &archon.Invocation{Method: methodStream, Request: archon.Bytes(req), Window: m.p.Window})
	if err != nil {
		return err
	}
	defer s.Close()
	for i := uint64(0); ; i++ {
		if _, ok := m.next(); !ok {
			return nil
		}
		item, err := s.Recv()
		if err == io.EOF {
			err = errors.Errorf("the stream ended after %d messages", i)
		}
		if err != nil {
			return err
		}
		err = checkStamp(item.Payload(), m.p.Size, i, nil)
		item.Release()
		if err != nil {
			return err
		}
		m.done.Add(1)
	}
}
