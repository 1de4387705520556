//go:build linux

package kdev

import (
	"fmt"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
)

// QP is what the kernel knows of a queue pair, and its state as software knows it. A
// provider embeds it and adds the queues, posting, Failed, Modify by way of Change, and
// Close, which begins with Destroy. All methods may be called by any goroutine once
// Create succeeded.
type QP struct {
	lifetime
	Handle uverbs.QPHandle // the kernel's name of it
	Given  qp.Caps         // capacities; the provider sets them before it hands the queue pair out

	num   qp.Num
	state atomic.Uint32 // qp.State
}

// Create makes the queue pair in the kernel, and gives the capacities that the kernel
// tells. self is the provider's queue pair, uhw the driver's own part of the request;
// domain and user handle of ask are filled in. The provider makes the number known,
// with [Context.Numbered], when the queue pair is complete.
func (q *QP) Create(d *PD, self QueuePair, ask uverbs.QPConfig, uhw *uverbs.UHW) (caps qp.Caps, err error) {
	q.ctx = d.ctx
	q.User = q.ctx.enter(&object{qp: self})
	ask.PD, ask.UserHandle = d.h, q.User
	if q.Handle, q.num, caps, err = q.ctx.K.CreateQP(&ask, uhw); err != nil {
		q.ctx.Leave(q.User, 0)
	}
	return caps, err
}

// Num is the queue pair's number.
func (q *QP) Num() qp.Num { return q.num }

// Caps are the capacities given.
func (q *QP) Caps() qp.Caps { return q.Given }

// State is the state as software knows it.
func (q *QP) State() qp.State { return qp.State(q.state.Load()) }

// Lost is told that the device is gone, and what is posted with it.
func (q *QP) Lost() { q.state.Store(uint32(qp.Err)) }

// Fail sets the state ERR, and reports whether it was another before.
func (q *QP) Fail() bool { return qp.State(q.state.Swap(uint32(qp.Err))) != qp.Err }

// Moved notes that the kernel took the queue pair from one state to another. If it was
// told meanwhile that the queue pair failed, the state stays ERR; RESET ends that.
func (q *QP) Moved(from, to qp.State) {
	if to == qp.Reset {
		q.state.Store(uint32(to))
		return
	}
	q.state.CompareAndSwap(uint32(from), uint32(to))
}

// Change sets attributes. Before it does, port is told the longest message of a
// port that is set, in bytes. When the kernel has done it, but before the new state is
// seen, done does what the provider's queues need.
func (q *QP) Change(a *qp.Attr, mask qp.AttrMask, port func(maxMessage uint32), done func(from, to qp.State) error) error {
	const op = "modify queue pair"
	q.control.Lock()
	defer q.control.Unlock()
	if err := q.open(op, q.name()); err != nil {
		return err
	}
	from := q.State()
	to := from
	if mask&qp.MaskState != 0 {
		to = a.State
	}
	err := qp.CheckTransition(from, to, mask)
	if err == nil {
		err = a.CheckValues(mask)
	}
	if err != nil {
		return q.ctx.Fail(op, q.name(), err, "")
	}
	if mask&qp.MaskPort != 0 {
		p, err := q.ctx.K.QueryPort(int(a.Port))
		if err != nil {
			return err
		}
		port(min(p.MaxMessage, qp.MaxMessage))
	}
	if err := q.ctx.K.ModifyQP(q.Handle, a, mask); err != nil {
		return err
	}
	err = done(from, to)
	q.Moved(from, to)
	return err
}

// FailAgain asks the kernel once more for the state ERR, unless the queue pair left it.
func (q *QP) FailAgain() {
	q.control.Lock()
	defer q.control.Unlock()
	if q.Closed() || q.State() != qp.Err {
		return // the handle may be another's by now, or the queue pair was reset
	}
	q.ctx.K.ModifyQP(q.Handle, &qp.Attr{State: qp.Err}, qp.MaskState) // fails only if the device or the queue pair is gone
}

func (q *QP) name() string { return fmt.Sprintf("%#x", uint32(q.num)) }

// Query asks the kernel for the attributes.
func (q *QP) Query() (qp.Attr, error) {
	if err := q.open("query queue pair", q.name()); err != nil {
		return qp.Attr{}, err
	}
	return q.ctx.K.QueryQP(q.Handle)
}

// Destroy ends the queue pair in the kernel, if check does not refuse it; nil: it does
// not. When it succeeds, the device no longer touches the queues' memory.
func (q *QP) Destroy(check func(qp.Num) error) error {
	return q.end("destroy queue pair", q.name(), func() (uverbs.Reported, error) {
		if check != nil {
			if err := check(q.num); err != nil {
				return uverbs.Reported{}, err
			}
		}
		return q.ctx.K.DestroyQP(q.Handle)
	})
}
