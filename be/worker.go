package be

import (
	"container/heap"
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
)

const (
	pollBatch    = 64 // completions a poll
	commandBatch = 64 // commands before completions are looked at again
)

// The ID of a work request: which engine of the worker, send or receive, and the
// engine's own number in the low half.
const (
	idRecv       = uint64(1) << 63
	idIndexShift = 32
	maxConns     = 1 << 24
)

// worker is one goroutine that drives engines: it runs the commands of
// application goroutines, polls the completion queue, steps the engines that are
// concerned, and blocks when there is nothing to do.
type worker struct {
	n       *Node
	cq      cq.CQ
	entries atomic.Int64 // completions that its engines may need
	scratch *core.Scratch
	shared  *sharedQueue // gives the receives of all engines; nil: each has its own
	ring    *ring
	done    chan struct{} // closed when the goroutine ended

	asleep atomic.Bool
	retry  atomic.Bool   // memory or quota came back
	room   atomic.Bool   // more may arrive
	bell   chan struct{} // wakes the worker once the device is lost

	// The goroutine's own.
	now      time.Duration
	conns    []*conn // by index; nil: free
	cap      *core.Cap
	arrivals *core.Arrivals // nil: without WindowTarget
	free     []int
	dirty    []*conn // touched in this round
	lost     []*conn // whose liveness line ended
	due      dueHeap
	next     time.Duration // of due, or of shared
	timer    *time.Timer
	timerAt  time.Duration
	full     bool // the last turn had as many commands or completions as it takes
	leaving  bool // the node closes: no new engines
	quit     bool // nothing is left to drive
	deviceUp bool
	downErr  error // why it is not
	wcs      [pollBatch]cq.Completion
	of       [pollBatch]*conn        // that wcs are for
	seen     [pollBatch]*core.Socket // by lookAhead
	ended    core.Stats
}

func newWorker(n *Node, q cq.CQ) *worker {
	w := &worker{n: n, cq: q, ring: newRing(), done: make(chan struct{}), bell: make(chan struct{}, 1), next: core.Never, timerAt: core.Never, deviceUp: true}
	w.scratch = core.NewScratch(n.cfg.SendDepth, n.cfg.RecvDepth, max(n.sendSGE, 2), n.mem)
	w.timer = time.AfterFunc(time.Hour, w.wake)
	w.timer.Stop()
	if limit := n.cfg.NodeWindowBytes; limit > 0 {
		limit = max(limit/n.cfg.Workers, n.cfg.FragmentBytes)
		w.cap = core.NewCap(limit, func(h core.Handler) { w.touch(h.(*conn)) })
	}
	if n.inbound != nil {
		w.arrivals = core.NewArrivals(n.inbound, func(h core.Handler) { w.touch(h.(*conn)) })
	}
	return w
}

// submit hands a command over; false when the node is closed. Any goroutine.
func (w *worker) submit(c *command) bool {
	if !w.ring.push(c) {
		return false
	}
	if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
		w.wake()
	}
	return true
}

// call runs f on the worker, and waits. Not for the worker itself.
func (w *worker) call(f func()) bool {
	ran := make(chan struct{})
	if !w.submit(calling(func() { f(); close(ran) })) {
		return false
	}
	<-ran
	return true
}

func (w *worker) wake() {
	w.cq.Wake()
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// poke sets a flag that the worker looks at in its next turn. Any goroutine.
func (w *worker) poke(flag *atomic.Bool) {
	flag.Store(true)
	if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
		w.wake()
	}
}

// takeEntries reserves the completions of one engine.
func (w *worker) takeEntries() bool {
	need := w.entriesEach()
	if w.entries.Add(need) > int64(w.cq.Capacity()) {
		w.entries.Add(-need)
		return false
	}
	return true
}

func (w *worker) freeEntries() { w.entries.Add(-w.entriesEach()) }

// entriesEach is how many completions one engine may need.
func (w *worker) entriesEach() int64 {
	if w.n.cfg.SharedReceives > 0 {
		return int64(w.n.cfg.SendDepth)
	}
	return int64(w.n.cfg.SendDepth + w.n.cfg.RecvDepth)
}

func (w *worker) run() {
	defer close(w.done)
	if w.n.cfg.LockThreads {
		runtime.LockOSThread() // until the goroutine ends
	}
	p := pace{spin: w.n.cfg.Spin, full: &w.full, told: &w.scratch.Told}
	for {
		busy := w.turn()
		if w.quit {
			break
		}
		switch p.next(w.now, busy) {
		case stepYield:
			now := w.now
			if busy {
				now = time.Since(w.n.start) // the turn may have been long
			}
			p.leave(now)
			runtime.Gosched()
		case stepSleep:
			if w.sleep() {
				p.slept(time.Since(w.n.start))
			}
		}
	}
	w.timer.Stop()
	w.ring.close()
	for !w.ring.drained() {
		if w.ring.run(commandBatch, w.execute) == 0 {
			runtime.Gosched()
		}
	}
}

// turn does once all that there is to do; false if that was nothing.
func (w *worker) turn() (busy bool) {
	w.now = time.Since(w.n.start)
	w.lookAtCommands()
	commands := w.ring.run(commandBatch, w.execute)
	busy, w.full = commands > 0, commands >= commandBatch
	if w.poll() {
		busy = true
	} else if len(w.lost) > 0 {
		busy = true
		w.dropLost()
	}
	if w.retry.Load() && w.retry.Swap(false) {
		w.retryHeld()
	}
	if w.room.Load() && w.room.Swap(false) {
		w.arrivals.Admit(w.now)
	}
	if w.now >= w.next {
		w.tick()
	}
	w.flush()
	return busy
}

// poll takes what completed; false when there was nothing.
func (w *worker) poll() bool {
	if !w.deviceUp {
		return false
	}
	n, err := w.cq.Poll(w.wcs[:])
	for i := range n {
		w.of[i] = w.connOf(&w.wcs[i])
	}
	w.lookAhead(n)
	for i := range n {
		c, conn := &w.wcs[i], w.of[i]
		if conn == nil || conn.gone { // the latter since this batch began
			w.stray(c)
			continue
		}
		conn.e.Complete(w.now, c)
		if !conn.e.Idle() {
			w.touch(conn)
		} else if !conn.dirty && (c.ID&idRecv != 0 || c.Status != cq.Success) { // what was sent brings no deadline nearer
			w.await(conn)
		}
	}
	if err != nil {
		w.deviceLost(err)
	}
	w.full = w.full || n == len(w.wcs)
	return n > 0
}

// touch marks an engine for the flush at the end of the round.
func (w *worker) touch(c *conn) {
	if !c.dirty {
		c.dirty = true
		w.dirty = append(w.dirty, c)
	}
}

// flush lets the engines of this round post what they have.
func (w *worker) flush() {
	for i := 0; i < len(w.dirty); i++ { // a flush may make room for another engine
		c := w.dirty[i]
		c.dirty = false
		c.e.Flush(w.now)
		w.await(c)
	}
	if w.shared != nil && w.shared.SharedRecv != nil {
		w.next = min(w.next, w.shared.Deadline())
	}
	clear(w.dirty)
	w.dirty = w.dirty[:0]
}

// sleep blocks until there may be something to do. It reports false if it found
// something while going to sleep.
func (w *worker) sleep() bool {
	w.asleep.Store(true)
	defer w.asleep.Store(false)
	if w.deviceUp {
		if err := w.cq.Arm(false); err != nil {
			w.deviceLost(&StepError{Step: StepArm, Err: err})
			return false
		}
	}
	// After arming and after asleep: what came before is seen here, what comes
	// later wakes us.
	if !w.ring.empty() || w.retry.Load() || w.room.Load() || w.poll() {
		return false
	}
	if w.next != core.Never && (w.timerAt > w.next || w.timerAt <= w.now) {
		w.timerAt = w.next
		w.timer.Reset(w.next - w.now)
	}
	if !w.deviceUp {
		<-w.bell
		return true
	}
	if err := w.cq.Wait(context.Background()); err != nil {
		w.deviceLost(err)
	}
	return true
}

// deviceLost ends every engine: the device answers no more.
func (w *worker) deviceLost(err error) {
	if !w.deviceUp {
		return
	}
	w.deviceUp, w.downErr = false, err
	for _, c := range w.conns {
		if c != nil {
			c.e.Fail(w.now, err)
			w.touch(c)
		}
	}
	w.flush()
}

// dropLost ends the engines whose peers are gone. It runs when the completion
// queue is empty, so that what the peer sent before its end was seen.
func (w *worker) dropLost() {
	for _, c := range w.lost {
		if c.index >= 0 {
			c.e.Fail(w.now, c.lostErr)
			w.touch(c)
		}
	}
	clear(w.lost)
	w.lost = w.lost[:0]
}

// execute runs one command.
func (w *worker) execute(c *command) {
	s := c.sock
	switch c.kind {
	case cmdSend:
		c.conn.e.Send(s, c.buf, c.lkey, c.tag, c.done)
		w.touch(c.conn)
	case cmdGather:
		c.conn.e.Gather(s, c.list, c.tag, c.done)
		w.touch(c.conn)
	case cmdPut:
		c.conn.e.Put(s, c.token, c.buf, c.lkey, c.tag, c.done)
		rests.Put(c.commandRest)
		w.touch(c.conn)
	case cmdFetch:
		c.conn.e.Fetch(s, c.token.Addr, mr.RKey(c.token.RKey), c.buf, c.lkey, c.tag, c.done)
		rests.Put(c.commandRest)
		w.touch(c.conn)
	case cmdCancel:
		c.conn.e.Cancel(s, c.tag)
		w.touch(c.conn)
	case cmdTaken:
		c.conn.e.Taken(s, int(c.tag))
		w.touch(c.conn)
	case cmdRoom:
		c.conn.e.Room(w.now, s)
		w.touch(c.conn)
	case cmdCall:
		w.scratch.Told = true // its caller may wait
		c.call()
	}
}

// reserve gives an index to a connection that comes up.
func (w *worker) reserve() (int, bool) {
	if n := len(w.free); n > 0 {
		i := w.free[n-1]
		w.free = w.free[:n-1]
		return i, true
	}
	if len(w.conns) >= maxConns {
		return 0, false
	}
	w.conns = append(w.conns, nil)
	return len(w.conns) - 1, true
}

// add starts to drive a connection's engine, unless the device answers no more.
func (w *worker) add(c *conn) error {
	if !w.deviceUp {
		return w.downErr
	}
	w.conns[c.index], c.num, c.due = c, c.e.QP().Num(), core.Never
	heap.Push(&w.due, c)
	w.touch(c)
	if w.leaving {
		c.e.Fail(w.now, ErrClosed)
	}
	return nil
}

// remove forgets a connection that is down.
func (w *worker) remove(c *conn) {
	st := c.e.Stats()
	w.ended.Add(&st)
	w.conns[c.index] = nil
	heap.Remove(&w.due, c.place)
	w.free = append(w.free, c.index)
	c.index = -1
}
