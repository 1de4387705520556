package stream_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// brokenDevice is a device whose completion queues cannot be armed once broken is set.
type brokenDevice struct {
	verbs.Context
	broken *atomic.Bool
}

type brokenPD struct{ verbs.PD }

type brokenCQ struct {
	cq.CQ
	broken *atomic.Bool
}

var errBroken = errors.New("the queue cannot be armed")

func (d brokenDevice) AllocPD() (verbs.PD, error) {
	pd, err := d.Context.AllocPD()
	return brokenPD{pd}, err
}

func (d brokenDevice) CreateCQ(c verbs.CQConfig) (cq.CQ, error) {
	q, err := d.Context.CreateCQ(c)
	return brokenCQ{q, d.broken}, err
}

func (p brokenPD) CreateQP(c verbs.QPConfig) (qp.QP, error) {
	c.SendCQ, c.RecvCQ = c.SendCQ.(brokenCQ).CQ, c.RecvCQ.(brokenCQ).CQ
	return p.PD.CreateQP(c)
}

func (q brokenCQ) Arm(solicited bool) error {
	if q.broken.Load() {
		return errBroken
	}
	return q.CQ.Arm(solicited)
}

// A queue of receives that cannot be armed ends reading with its error, not in a wait
// for an event that never comes.
func TestReceivesCannotBeArmed(t *testing.T) {
	_, a, b := newPair(t)
	broken := &atomic.Bool{}
	a.wrap(func(c verbs.Context) verbs.Context { return brokenDevice{c, broken} })
	broken.Store(true)
	x, y := join(t, a, b)
	must(t, x.SetReadDeadline(time.Now().Add(patience)))
	if _, err := x.Read(make([]byte, 1)); !errors.Is(err, errBroken) {
		t.Errorf("read: %v", err)
	}
	must(t, x.Close())
	must(t, y.Close())
}
