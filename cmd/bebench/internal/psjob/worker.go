package psjob

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
	"github.com/byteexpress/byteexpress/ps"
)

func joinPort(host string) string { return net.JoinHostPort(host, "0") }

// slot is one request that is under way, or whose response is held.
type slot struct {
	fetch ps.FetchCall
	push  ps.PushCall
	at    time.Time // of the issue
	phase int32     // likewise
	// Bound once: they put the slot into the worker's channel.
	fetched func(*ps.FetchCall)
	pushed  func(*ps.PushCall)
}

// worker is a client of the table with its own connections.
type worker struct {
	cfg    *Config
	driver *Driver
	index  int
	client *ps.Client
	stream []uint64
	truth  *truth
	stop   *atomic.Bool
	back   chan *slot
	slots  []*slot // grows to the longest list; reused
	list   []request
	issued int // of the list
	failed int
	err    error
	phases *phaseLatency // nil: nothing happens meanwhile
}

func newWorker(d *Driver, index int, client *ps.Client) *worker {
	return &worker{
		cfg: d.cfg, driver: d, index: index, client: client, stream: d.stream, truth: d.truth, stop: &d.stop,
		back: make(chan *slot, d.cfg.Outstanding),
	}
}

// slot gives the n-th slot, made at its first use.
func (w *worker) slot(n int) *slot {
	for len(w.slots) <= n {
		s := &slot{}
		s.fetched = func(*ps.FetchCall) { w.back <- s }
		s.pushed = func(*ps.PushCall) { w.back <- s }
		w.slots = append(w.slots, s)
	}
	return w.slots[n]
}

// prepare readies the worker for a slice, outside the measured time.
func (w *worker) prepare(list []request) {
	w.list, w.issued, w.err = list, 0, nil
	if len(list) > 0 {
		w.slot(len(list) - 1)
	}
	for i, r := range list {
		s := w.slots[i]
		s.fetch.Keys = w.stream[r.from : r.from+r.n]
		s.push.Keys = s.fetch.Keys
		if w.cfg.Workload == Training {
			s.push.Gradients = w.truth.gradients(r)
		}
	}
}

// run issues the whole list, with so many outstanding, and records latencies.
func (w *worker) run(op string, rec *hist.Recorder) {
	under := 0
	for {
		for under < w.cfg.Outstanding && w.issued < len(w.list) && w.err == nil && !w.stop.Load() {
			w.issue(op, w.slots[w.issued])
			w.issued++
			under++
		}
		if under == 0 {
			return
		}
		s := <-w.back
		took := time.Since(s.at)
		rec.Record(took)
		if w.phases != nil {
			w.phases.record(w.driver.Change, s.phase, took)
		}
		under--
		if err := s.err(op); err != nil {
			w.failed++
			if w.err == nil {
				w.err = err
			}
		}
	}
}

func (w *worker) issue(op string, s *slot) {
	if s.at = time.Now(); w.phases != nil {
		s.phase = w.driver.Change.phase.Load()
	}
	if op == OpFetch {
		w.client.GoFetch(&s.fetch, s.fetched)
	} else {
		w.client.GoPush(&s.push, s.pushed)
	}
}

func (s *slot) err(op string) error {
	if op == OpFetch {
		return s.fetch.Err
	}
	return s.push.Err
}

// book counts the pushes that were issued as done.
func (w *worker) book() {
	for _, r := range w.list[:w.issued] {
		w.truth.push(w.stream[r.from:r.from+r.n], r.from)
	}
}

// settle verifies the held responses, and gives them back whatever they are. It
// returns how many rows were compared.
func (w *worker) settle(ctx context.Context) (rows int64, err error) {
	for _, s := range w.slots[:w.issued] {
		if s.fetch.Err != nil {
			continue
		}
		if w.cfg.Verify && err == nil {
			for i, key := range s.fetch.Keys {
				if err = w.truth.check(key, s.fetch.Row(i)); err != nil {
					err = errors.WithMessagef(err, "worker %d", w.index)
					break
				}
				rows++
			}
		}
		s.fetch.Release()
	}
	return rows, err
}
