package be

import (
	"fmt"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// sharedQueue is a worker's shared receive queue, of Config.SharedReceives.
type sharedQueue struct {
	*core.SharedRecv
	srq  qp.SRQ
	byQP map[qp.Num]*conn // the receives do not say whose they are
}

// share makes the shared receive queue of a worker that does not run yet.
func (w *worker) share(attr *verbs.DeviceAttr) error {
	n := w.n
	k := n.cfg.SharedReceives
	if k == 0 {
		return nil
	}
	if k > w.cq.Capacity()-n.cfg.SendDepth {
		return &ConfigError{"SharedReceives", int64(k), fmt.Sprintf("at most CQEntries, %d, less SendDepth, %d", w.cq.Capacity(), n.cfg.SendDepth)}
	}
	cfg := verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: k, RecvSGE: 2}}
	if err := attr.CheckSRQ(cfg); err != nil {
		return stepOfNode(StepSRQ, errors.WithMessagef(err, "of %d receives (Config.SharedReceives)", k))
	}
	srq, err := n.pd.CreateSRQ(cfg)
	if err != nil {
		return stepOfNode(StepSRQ, errors.WithMessagef(err, "of %d receives (Config.SharedReceives)", k))
	}
	r, err := core.NewSharedRecv(core.SharedConfig{Receives: k, Least: n.cfg.RecvDepth, Buffer: n.cfg.EagerBytes, IDBase: idRecv, Touch: func(h core.Handler) { w.touch(h.(*conn)) }}, srq, n.mem)
	if err != nil {
		srq.Close()
		return stepOfNode(StepSRQ, errors.WithMessagef(err, "of %d receives (Config.SharedReceives)", k))
	}
	w.shared = &sharedQueue{SharedRecv: r, srq: srq, byQP: map[qp.Num]*conn{}}
	w.entries.Add(int64(k))
	return nil
}

// unshare gives the queue back. Every engine of the worker is down.
func (w *worker) unshare() error {
	if w.shared == nil {
		return nil
	}
	err := w.shared.srq.Close()
	w.shared.SharedRecv.Close()
	w.shared = nil
	return err
}

// connOf is the connection that a completion is for, nil if it is gone.
func (w *worker) connOf(c *cq.Completion) *conn {
	if w.shared != nil && c.ID&idRecv != 0 {
		return w.shared.byQP[c.QPNum]
	}
	index := int(c.ID &^ idRecv >> idIndexShift)
	if index >= len(w.conns) || w.conns[index] == nil || w.conns[index].num != c.QPNum {
		return nil
	}
	return w.conns[index]
}

// stray takes a completion of a queue pair that is gone.
func (w *worker) stray(c *cq.Completion) {
	w.n.strays.Add(1)
	if w.shared != nil && c.ID&idRecv != 0 {
		w.shared.Discard(c)
	}
}

// lentPause is how long an engine waits for receives that are lent to others before it
// asks again.
const lentPause = 2 * time.Millisecond

// prepareEngine posts the receives of an engine that no worker has yet. If they have to
// come back from others, it waits for a step's time.
func (w *worker) prepareEngine(c *conn) (err error) {
	if w.shared == nil {
		return c.e.Prepare()
	}
	for end := time.Now().Add(w.n.cfg.StepTimeout); ; waitFor(w.n.life.Done(), lentPause) {
		if !w.call(func() {
			if err = c.e.Prepare(); err == nil {
				w.shared.byQP[c.e.QP().Num()] = c
			}
		}) {
			return ErrClosed
		}
		if !errors.Is(err, core.ErrLent) || time.Now().After(end) || w.n.life.Err() != nil {
			return err
		}
	}
}

// abortEngine undoes prepareEngine and closes the queue pair.
func (w *worker) abortEngine(c *conn) {
	abort := func() {
		w.forgetQP(c)
		c.e.Abort()
	}
	if w.shared == nil || !w.call(abort) {
		abort()
	}
}

// forgetQP has later completions of a shared queue pair go astray.
func (w *worker) forgetQP(c *conn) {
	if w.shared != nil && w.shared.byQP[c.e.QP().Num()] == c {
		delete(w.shared.byQP, c.e.QP().Num())
	}
}
