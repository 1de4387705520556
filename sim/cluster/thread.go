package cluster

import (
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/prefetch"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// thread is what be.Node's worker is: it has a completion queue and engines of its
// own.
type thread struct {
	n        *Node
	num      int
	cq       *nic.CQ
	done     []cq.Completion // that came and were not polled
	first    int             // of done
	armed    bool            // the next completion plans a step
	scratch  *core.Scratch   // of its engines
	arrivals *core.Arrivals  // nil: without WindowTarget
	dirty    []*engine
	planned  bool            // a step is to come
	got      []cq.Completion // polled in this step
	sends    int             // messages that the application sent since the last step
}

// plan has a step follow.
func (t *thread) plan() {
	n := t.n
	if t.planned || n.crashed {
		return
	}
	t.planned = true
	if n.cpu != nil {
		t.planPoll()
		return
	}
	n.c.k.At(n.c.k.Now()+n.delay, n.c.stepKind, int32(n.ID()), int32(t.num))
}

// completed is the sink of the thread's completion queue. There is always room: the
// engines' depths bound what comes. Unlike a ring with that much room it takes up little
// memory, and always the same.
func (t *thread) completed(c cq.Completion, _, _ bool) bool {
	t.done = append(t.done, c)
	if t.armed {
		t.armed = false
		t.plan()
	}
	return true
}

// pollMost is how many completions are polled at a time.
const pollMost = 64

// take polls.
func (t *thread) take() []cq.Completion {
	n := min(len(t.done)-t.first, pollMost)
	t.got = append(t.got[:0], t.done[t.first:][:n]...)
	if t.first += n; t.first > len(t.done)/2 || t.first == len(t.done) {
		t.done, t.first = t.done[:copy(t.done, t.done[t.first:])], 0
	}
	return t.got
}

// touch has an engine flushed in this step of its thread or the next.
func (n *Node) touch(e *engine) {
	if !e.isDirty {
		e.isDirty = true
		e.t.dirty = append(e.t.dirty, e)
	}
	e.t.plan()
}

// step works off all completions, tells the application, and flushes.
func (t *thread) step() {
	n := t.n
	if n.crashed {
		return
	}
	if n.cpu != nil {
		t.act()
	} else {
		now := n.c.k.Now().Duration()
		for got := t.take(); len(got) > 0; got = t.take() {
			for i := range got {
				n.complete(now, &got[i])
			}
		}
		t.flush(now)
	}
	t.planned = false
	t.armed = true
	if t.first < len(t.done) || len(t.dirty) > 0 {
		t.plan()
	}
}

// soonPoll prepares for polling.
func (t *thread) soonPoll(step int) {
	if step == 0 {
		prefetch.Object(t)
	} else if t.first < len(t.done) {
		prefetch.Object(&t.done[t.first])
	}
}

// soonTell prepares for telling the application of the first note.
func (n *Node) soonTell(step int) {
	if n.first == len(n.later) {
		return
	}
	switch l := &n.later[n.first]; {
	case step == 0:
		prefetch.Object(l)
	case l.what != noteMessage:
	case step == 1:
		prefetch.Object(l.sock)
		prefetch.Object(l.e)
	case step == 2:
		prefetch.Of(l.sock.User, 64)
		l.sock.PrefetchTaken()
		l.e.core.PrefetchFlush(0)
	case step == 3:
		l.e.core.PrefetchTaken()
	}
}

// soon prepares for a step, and gets what the step before it has found.
func (t *thread) soon(step int) {
	if step == 0 {
		prefetch.Object(t.scratch)
	}
	for i := range t.got {
		c := &t.got[i]
		if step == 0 {
			prefetch.Object(&t.n.engines[engineOf(c)])
			continue
		}
		e := t.n.engines[engineOf(c)]
		if step == 1 {
			prefetch.Object(e)
			continue
		}
		e.core.Prefetch(step-2, c)
		e.soonPost(step)
	}
	for _, e := range t.dirty {
		if step == 1 {
			prefetch.Object(e)
		} else if step > 1 {
			e.core.PrefetchFlush(step - 2)
			e.soonPost(step)
		}
	}
}

// soonPost gets what a post needs.
func (e *engine) soonPost(step int) {
	switch step {
	case 2:
		prefetch.Object(e.qp)
	case 3:
		e.qp.PrefetchPost(0)
	case 4:
		e.qp.PrefetchPost(1)
	}
}

// complete gives a completion to its engine.
func (n *Node) complete(now time.Duration, c *cq.Completion) {
	e := n.engines[engineOf(c)]
	e.core.Complete(now, c)
	n.touch(e)
}

// engineOf is the number of the engine of a completion.
func engineOf(c *cq.Completion) int32 { return int32(c.ID &^ recvBit >> 32) }

// flush has the engines that did something post, and tells the application.
func (t *thread) flush(now time.Duration) {
	n := t.n
	n.tell()
	for i := 0; i < len(t.dirty); i++ { // telling may touch more
		e := t.dirty[i]
		e.isDirty = false
		if !e.isDown {
			e.core.Flush(now)
		}
		e.arm(now)
		n.tell()
	}
	t.dirty = t.dirty[:0]
}

// planPoll has a step begin when the thread's core is free.
func (t *thread) planPoll() {
	n := t.n
	n.c.k.At(max(n.c.k.Now(), n.cpu.Free(t.num)), n.c.pollKind, int32(n.ID()), int32(t.num))
}

// poll takes completions, and lets the engines act on them when that is paid for.
func (t *thread) poll() {
	n := t.n
	t.take()
	cost := n.costs.EmptyPoll + des.Time(len(t.got))*n.costs.Completion
	for i := range t.got {
		if t.got[i].ID&recvBit != 0 {
			cost += n.costs.Message
		}
	}
	cost += des.Time(t.sends) * n.costs.Message
	t.sends = 0
	n.c.k.At(n.cpu.Do(t.num, hostcpu.Engine, n.c.k.Now(), cost), n.c.stepKind, int32(n.ID()), int32(t.num))
}

// act is a step's effect: engines take the completions and post.
func (t *thread) act() {
	n := t.n
	now := n.c.k.Now()
	before := n.host.Posted()
	n.host.HoldDoorbells()
	for i := range t.got {
		n.complete(now.Duration(), &t.got[i])
	}
	t.got = t.got[:0]
	t.flush(now.Duration())
	p := n.host.Posted()
	cost := des.Time(p.Sends-before.Sends)*n.costs.WQE + des.Time(p.Doorbells-before.Doorbells)*n.costs.Doorbell + des.Time(p.Receives-before.Receives)*n.costs.Receive
	n.host.RingDoorbells(n.cpu.Do(t.num, hostcpu.Engine, now, cost) - now)
}
