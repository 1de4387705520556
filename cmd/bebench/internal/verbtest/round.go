package verbtest

import (
	"context"
	"encoding/json"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
)

// finished says how many messages the sender's initiators sent on each lane of
// each flow.
type finished struct {
	Counts map[int][]int64 `json:"counts"`
}

// verdict is what an end measured as initiator, and found wrong.
type verdict struct {
	Mismatch string  `json:"mismatch,omitempty"`
	Ops      int64   `json:"ops"`
	Seconds  float64 `json:"seconds"`
	PeakBps  float64 `json:"peak_bytes_per_s"`
}

// round is one measurement at one end.
type round struct {
	c      *control.Conn
	p      *Params
	r      *rig
	client bool
	flows  []*flow
}

// newRound makes flows, tells the peer of them and connects them.
func newRound(ctx context.Context, c *control.Conn, r *rig, p *Params, client bool, size int) (_ *round, err error) {
	rd := &round{c: c, p: p, r: r, client: client}
	defer func() {
		if err != nil {
			_ = rd.close()
		}
	}()
	n := p.Threads
	if p.Bidirectional {
		n *= 2
	}
	mine := r.endpoint()
	for i := range n {
		lanes := (p.QPs + p.Threads - 1 - i%p.Threads) / p.Threads
		f, err := newFlow(r, p, i, client == (i < p.Threads), lanes, size)
		if f != nil {
			rd.flows = append(rd.flows, f)
		}
		if err != nil {
			return nil, err
		}
		var ends []qpEnd
		for _, l := range f.lanes {
			ends = append(ends, l.end(f))
		}
		mine.Flows = append(mine.Flows, ends)
	}
	return rd, rd.connect(ctx, &mine)
}

// connect exchanges endpoints and takes every queue pair to RTS.
func (rd *round) connect(ctx context.Context, mine *endpoint) error {
	if err := rd.c.Send("endpoints", mine); err != nil {
		return err
	}
	var peer endpoint
	if err := rd.c.Recv("endpoints", &peer); err != nil {
		return err
	}
	err := mine.fits(&peer)
	if err == nil && !rd.p.CM { // the connection manager has rules of its own
		_, err = mine.address(rd.r).Global(peer.address(rd.r))
	}
	if err != nil {
		return errors.WithMessage(err, "step endpoints with "+rd.c.Peer())
	}
	for i, f := range rd.flows {
		for j, l := range f.lanes {
			l.remote = peer.Flows[i][j]
			if need := uint64(f.lay.bytes()); rd.p.Op != Send && f.initiator && l.remote.Length < need {
				return errors.Errorf("step endpoints with %s: the peer's memory has %d bytes, %d needed", rd.c.Peer(), l.remote.Length, need)
			}
			if rd.p.CM {
				continue
			}
			if err := l.connect(rd.r, rd.p, mine, &peer); err != nil {
				return err
			}
		}
	}
	if rd.p.CM {
		if err := rd.connectCM(ctx, mine, &peer); err != nil {
			return errors.WithMessage(err, "-R")
		}
	}
	for _, f := range rd.flows {
		if err := f.postFirst(); err != nil {
			return err
		}
	}
	if err := rd.c.Send("ready", nil); err != nil {
		return err
	}
	return rd.c.Recv("ready", nil)
}

// run lets all flows work, and ends when both ends are done. stop asks the
// initiators to finish early.
func (rd *round) run(ctx context.Context, stop <-chan struct{}) (spent cost.Spent, peer verdict, err error) {
	s := rd.c.Begin(ctx, rd.setTargets)
	defer func() { s.End(err) }()
	for _, f := range rd.flows {
		f.ctx = s.Context()
	}
	if spent, err = rd.supervise(s, stop); err != nil {
		return spent, peer, err
	}
	err = s.Conclude(func() any {
		for _, f := range rd.flows {
			f.checkMemory()
		}
		return rd.verdict()
	}, &peer)
	return spent, peer, err
}

// supervise runs the flows, tells the peer when its part is done, and makes all
// give up when one fails or the session ends. It returns when all have ended.
func (rd *round) supervise(s *control.Session, stop <-chan struct{}) (spent cost.Spent, err error) {
	meter := cost.Start()
	ended := make(chan error, len(rd.flows))
	for _, f := range rd.flows {
		go func() { ended <- f.run() }()
	}
	gone := s.Context().Done()
	for told, left := false, len(rd.flows); ; {
		if !told && err == nil && rd.initiatorsDone() {
			spent, told = meter.Since(), true
			err = s.Finished(rd.finished())
		}
		if left == 0 {
			return spent, err
		}
		select {
		case e := <-ended:
			left--
			if e != nil && err == nil {
				err = s.Cause(e)
			}
		case <-stop:
			stop = nil
			for _, f := range rd.flows {
				f.stop.Store(true)
				f.wake()
			}
		case <-gone:
			gone = nil
			if err == nil {
				err = s.Err()
			}
		}
		if err != nil {
			for _, f := range rd.flows {
				f.abort.Store(true)
				f.wake()
			}
		}
	}
}

func (rd *round) initiatorsDone() bool {
	for _, f := range rd.flows {
		if f.initiator && !f.done.Load() {
			return false
		}
	}
	return true
}

func (rd *round) finished() finished {
	m := finished{map[int][]int64{}}
	for _, f := range rd.flows {
		if f.initiator {
			m.Counts[f.index] = f.counts()
		}
	}
	return m
}

// setTargets tells our responders how many messages there are.
func (rd *round) setTargets(body json.RawMessage) error {
	var fin finished
	if err := json.Unmarshal(body, &fin); err != nil {
		return errors.Wrap(err, "message")
	}
	for _, f := range rd.flows {
		if f.initiator {
			continue
		}
		n := fin.Counts[f.index]
		if len(n) != len(f.lanes) {
			return errors.Errorf("flow %d has %d counts, %d queue pairs", f.index, len(n), len(f.lanes))
		}
		f.expect(n, rd.c.Limit())
	}
	return nil
}

// verdict sums our initiators and names the first mismatch of all flows.
func (rd *round) verdict() verdict {
	var v verdict
	for _, f := range rd.flows {
		if v.Mismatch == "" {
			v.Mismatch = f.bad
		}
		if f.initiator {
			v.Ops += f.ops.Load()
			v.Seconds = max(v.Seconds, f.wall.Seconds())
			v.PeakBps += f.peak.Bps()
		}
	}
	return v
}

// close destroys all flows.
func (rd *round) close() error {
	var first error
	for _, f := range rd.flows {
		if err := f.close(rd.r); first == nil {
			first = err
		}
	}
	return first
}
