package verbtest

import (
	"context"
	"sync"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
)

// heartbeat is how often an end tells the other that it is alive while a round
// runs. A peer that is silent for the control connection's limit is given up.
const heartbeat = 250 * time.Millisecond

// Messages of a round, in order.
type (
	// finished: the sender's initiators are done, with so many messages on each
	// lane of each flow.
	finished struct {
		Counts map[int][]int64 `json:"counts"`
	}
	// verdict: what the sender measured as initiator, and found wrong.
	verdict struct {
		Mismatch string  `json:"mismatch,omitempty"`
		Ops      int64   `json:"ops"`
		Seconds  float64 `json:"seconds"`
		PeakBps  float64 `json:"peak_bytes_per_s"`
	}
)

// round is one measurement at one end.
type round struct {
	c     *control.Conn
	p     *Params
	r     *rig
	flows []*flow

	ctx    context.Context
	giveUp context.CancelCauseFunc

	peerFinished chan struct{}
	peerEnded    chan struct{}
	peerVerdict  chan verdict
}

// newRound makes flows, tells the peer of them and connects them.
func newRound(ctx context.Context, c *control.Conn, r *rig, p *Params, client bool, size int) (_ *round, err error) {
	rd := &round{c: c, p: p, r: r, peerFinished: make(chan struct{}), peerEnded: make(chan struct{}), peerVerdict: make(chan verdict, 1)}
	rd.ctx, rd.giveUp = context.WithCancelCause(ctx)
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
			f.ctx = rd.ctx
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
	return rd, rd.connect(&mine)
}

// connect exchanges endpoints and takes every queue pair to RTS.
func (rd *round) connect(mine *endpoint) error {
	if err := rd.c.Send("endpoints", mine); err != nil {
		return err
	}
	var peer endpoint
	if err := rd.c.Recv("endpoints", &peer); err != nil {
		return err
	}
	if err := mine.fits(&peer); err != nil {
		return errors.WithMessage(err, "step endpoints with "+rd.c.Peer())
	}
	for i, f := range rd.flows {
		for j, l := range f.lanes {
			l.remote = peer.Flows[i][j]
			if need := uint64(len(l.mem)); rd.p.Op != Send && f.initiator && l.remote.Length < uint64(f.lay.bytes()) {
				return errors.Errorf("step endpoints with %s: the peer's memory has %d bytes, %d needed", rd.c.Peer(), l.remote.Length, need)
			}
			if err := l.connect(rd.r, rd.p, mine, &peer); err != nil {
				return err
			}
		}
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
func (rd *round) run(stop <-chan struct{}) (spent cost.Spent, peer verdict, err error) {
	var listener sync.WaitGroup
	listener.Go(rd.listen)
	listener.Go(rd.beat)
	defer listener.Wait()
	defer rd.giveUp(errAborted) // ends beat, and flows after an error

	meter := cost.Start()
	ended := make(chan error, len(rd.flows))
	for _, f := range rd.flows {
		go func() { ended <- f.run() }()
	}
	spent, err = rd.supervise(stop, ended, meter)
	if err != nil {
		// The peer learns why before the connection closes.
		rd.c.Fail(err)
		rd.c.Close() // ends listen
		return spent, peer, err
	}
	if err = rd.await(rd.peerEnded); err == nil {
		for _, f := range rd.flows {
			f.checkMemory()
		}
		err = rd.c.Send("verdict", rd.verdict())
	}
	if err != nil {
		rd.c.Close()
		return spent, peer, err
	}
	select {
	case peer = <-rd.peerVerdict:
		return spent, peer, nil
	case <-rd.ctx.Done():
		rd.c.Close()
		return spent, peer, context.Cause(rd.ctx)
	}
}

// supervise waits for the flows, tells the peer when its part is done, and makes
// all give up when one fails.
func (rd *round) supervise(stop <-chan struct{}, ended <-chan error, meter cost.Meter) (spent cost.Spent, err error) {
	told := false
	for left := len(rd.flows); left > 0 || !told; {
		if !told && rd.initiatorsDone() && err == nil {
			spent, told = meter.Since(), true
			if err = rd.c.Send("finished", rd.finished()); err != nil {
				rd.giveUp(err)
			}
			continue
		}
		if err != nil && left == 0 {
			break
		}
		select {
		case e := <-ended:
			left--
			if e != nil && err == nil {
				rd.giveUp(e)
				err = context.Cause(rd.ctx)
			}
		case <-stop:
			stop = nil
			for _, f := range rd.flows {
				f.stop.Store(true)
				f.wake()
			}
		case <-rd.aborting(err):
			err = context.Cause(rd.ctx)
		}
		if err != nil {
			for _, f := range rd.flows {
				f.abort.Store(true)
				f.wake()
			}
		}
	}
	if err != nil {
		return spent, err
	}
	return spent, rd.c.Send("ended", nil)
}

// aborting fires once when someone gave up.
func (rd *round) aborting(err error) <-chan struct{} {
	if err != nil {
		return nil
	}
	return rd.ctx.Done()
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

// listen takes the peer's messages until its verdict.
func (rd *round) listen() {
	for {
		var fin finished
		var v verdict
		step, err := rd.c.RecvAny(map[string]any{"alive": nil, "finished": &fin, "ended": nil, "verdict": &v})
		if err == nil && step == "finished" {
			err = rd.setTargets(&fin)
		}
		if err != nil {
			rd.giveUp(err)
			return
		}
		switch step {
		case "finished":
			close(rd.peerFinished)
		case "ended":
			close(rd.peerEnded)
		case "verdict":
			rd.peerVerdict <- v
			return
		}
	}
}

// setTargets tells our responders how many messages there are.
func (rd *round) setTargets(fin *finished) error {
	select {
	case <-rd.peerFinished:
		return errors.Errorf("step finished with %s: came twice", rd.c.Peer())
	default:
	}
	for _, f := range rd.flows {
		if f.initiator {
			continue
		}
		n := fin.Counts[f.index]
		if len(n) != len(f.lanes) {
			return errors.Errorf("step finished with %s: flow %d has %d counts, %d queue pairs", rd.c.Peer(), f.index, len(n), len(f.lanes))
		}
		f.target.Store(&n)
		f.wake()
	}
	return nil
}

// beat tells the peer that we are alive.
func (rd *round) beat() {
	t := time.NewTicker(heartbeat)
	defer t.Stop()
	for {
		select {
		case <-rd.ctx.Done():
			return
		case <-t.C:
			if err := rd.c.Send("alive", nil); err != nil {
				rd.giveUp(err)
				return
			}
		}
	}
}

func (rd *round) await(c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-rd.ctx.Done():
		return context.Cause(rd.ctx)
	}
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
			v.PeakBps += f.peak.bestBps
		}
	}
	return v
}

// close destroys all flows.
func (rd *round) close() error {
	rd.giveUp(errAborted)
	var first error
	for _, f := range rd.flows {
		if err := f.close(rd.r); first == nil {
			first = err
		}
	}
	return first
}
