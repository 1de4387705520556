package be

import (
	"fmt"
	"math"
	"sync"
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
	srq    qp.SRQ
	byQP   map[qp.Num]*conn // the receives do not say whose they are
	base   uint64           // of the receives' IDs
	failed bool             // the device said so: it is to be replaced
	// making is held for reading by who makes a queue pair that takes receives here.
	making sync.RWMutex
}

// idGeneration is what the IDs of one queue's receives differ in from those of the queue
// that it replaces.
const idGeneration = uint64(1) << 32

var errSharedFailed = errors.New("the shared receive queue failed, and its engines are not down yet")

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
	w.shared = &sharedQueue{base: idRecv, byQP: map[qp.Num]*conn{}}
	if err := w.makeShared(); err != nil {
		w.shared = nil
		return err
	}
	w.entries.Add(int64(k))
	return nil
}

// makeShared makes the queue of the device, and posts its receives.
func (w *worker) makeShared() error {
	n, k, s := w.n, w.n.cfg.SharedReceives, w.shared
	srq, err := n.pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: k, RecvSGE: 2}})
	if err != nil {
		return stepOfNode(StepSRQ, errors.WithMessagef(err, "of %d receives (Config.SharedReceives)", k))
	}
	r, err := core.NewSharedRecv(core.SharedConfig{Receives: k, Least: n.cfg.RecvDepth, Buffer: n.cfg.EagerBytes, IDBase: s.base, Touch: func(h core.Handler) { w.touch(h.(*conn)) }}, srq, n.mem)
	if err != nil {
		srq.Close()
		return stepOfNode(StepSRQ, errors.WithMessagef(err, "of %d receives (Config.SharedReceives)", k))
	}
	s.SharedRecv, s.srq, s.failed = r, srq, false
	return nil
}

// sharedFailed ends the engines that take receives from a queue that the device gave up.
func (w *worker) sharedFailed(srq qp.SRQ, cause error) {
	s := w.shared
	if s == nil || s.srq != srq {
		return
	}
	s.failed = true
	for _, c := range s.byQP {
		c.e.Fail(w.now, c.peerError(cause))
		w.touch(c)
	}
}

// renewShared replaces the queue if it failed. It waits a step's time for its engines to
// be down.
func (w *worker) renewShared() (err error) {
	for end := time.Now().Add(w.n.cfg.StepTimeout); w.shared != nil; waitFor(w.n.life.Done(), lentPause) {
		if !w.call(func() { err = w.replaceShared() }) {
			return ErrClosed
		}
		if !errors.Is(err, errSharedFailed) || time.Now().After(end) || w.n.life.Err() != nil {
			return err
		}
	}
	return nil
}

func (w *worker) replaceShared() error {
	s := w.shared
	if !s.failed {
		return nil
	}
	if len(s.byQP) > 0 || !s.making.TryLock() {
		return errSharedFailed
	}
	defer s.making.Unlock()
	if s.SharedRecv != nil { // else it could not be made anew before
		if s.srq.Close() != nil { // a queue pair is about to be closed
			return errSharedFailed
		}
		s.SharedRecv.Close()
		s.SharedRecv, s.srq = nil, nil
	}
	// Completions of the old one may be under way.
	s.base += idGeneration
	return w.makeShared()
}

// unshare gives the queue back. Every engine of the worker is down.
func (w *worker) unshare() error {
	if w.shared == nil {
		return nil
	}
	var err error
	if w.shared.SharedRecv != nil {
		err = w.shared.srq.Close()
		w.shared.SharedRecv.Close()
	}
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
	if w.shared != nil && c.ID&^math.MaxUint32 == w.shared.base {
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
			if w.shared.failed {
				err = errSharedFailed
			} else if err = c.e.Prepare(); err == nil {
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
