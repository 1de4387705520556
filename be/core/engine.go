package core

import (
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

type engineState uint8

const (
	engineNew    engineState = iota // the peer is not ready yet
	engineUp                        // messages flow
	engineFailed                    // the queue pair is in ERR and flushes
	engineDown                      // everything is given back
)

// Never is the deadline of an engine that waits for nothing.
const Never = time.Duration(1<<63 - 1)

// Engine is one queue pair to one remote node, and all that shares it.
type Engine struct {
	cfg   Config
	qp    qp.QP
	mem   Memory
	quota Quota
	h     Handler
	state engineState
	err   error // why it failed

	chain   *Chain
	recv    *recvRing   // nil: shared has the receives
	entries *entries    // of either
	shared  *SharedRecv // nil: recv has them
	share   share       // of shared
	newest  uint64      // SharedRecv.newest when this engine completed one last
	credits Credits
	window  Window
	cap     *Cap
	capWait capWait
	slabs   [2][]byte
	deficit int // consumed receives that wait for replacement

	inLine             int         // messages of the peer that are in a line of arrivals
	waiting            arrivalLine // those whose turn has not come
	turnPrev, turnNext *Engine     // in line with these

	controls controlQueue
	sched    scheduler
	flushed  outList // messages whose last request was flushed: they end with the cause

	table     table
	sending   int // outgoing messages whose callers were not told yet
	lingering []*Socket
	transfers transfers
	heldHead  *incoming
	heldTail  *incoming
	held      int
	walk      uint64
	scratch   *Scratch

	leaving    bool          // Goodbye was called
	goAwaySent bool          // and GOAWAY prepared
	leaveBy    time.Duration // when it is prepared at the latest
	drainBy    time.Duration
	flushBy    time.Duration // when a flush without its cause is taken for the cause
	flushErr   error
	retryAt    time.Duration // for memory
	lastHeard  time.Duration
	pinged     bool
	creditWait stall
	windowWait stall
	capStall   stall
	slotWait   stall
	stats      Stats
}

// NewEngine makes the engine of a queue pair in any state up to RTS.
func NewEngine(cfg Config, q qp.QP, mem Memory, quota Quota, h Handler) (*Engine, error) {
	e := &Engine{
		cfg: cfg, qp: q, mem: mem, quota: quota, h: h,
		credits: NewCredits(cfg.PeerDepth, cfg.RecvDepth, true), window: NewWindow(cfg.Window), cap: cfg.Cap, transfers: transfers{free: -1},
		drainBy: Never, retryAt: Never, leaveBy: Never, flushBy: Never,
		sched: newScheduler(max(cfg.Fragment, cfg.EagerLimit+wire.HeaderLen)),
	}
	e.credits.limit = int32(max(cfg.PeerDepth, cfg.PeerMost))
	if cfg.WindowTarget > 0 {
		e.window = NewAdaptiveWindow(min(cfg.Fragment, cfg.Window), cfg.Window, cfg.WindowTarget)
	}
	var keys [2]qp.SGE
	for i, n := range []int{slabBytes(cfg.SendDepth), cfg.RecvDepth * wire.HeaderLen} {
		if i == 1 && cfg.Shared != nil {
			break
		}
		b, err := mem.Alloc(n)
		if err != nil {
			e.freeMemory()
			return nil, err
		}
		e.slabs[i] = b
		if keys[i].LKey, err = mem.LKey(b); err != nil {
			e.freeMemory()
			return nil, err
		}
	}
	if e.scratch = cfg.Scratch; !e.scratch.fits(&cfg, q) {
		e.scratch = NewScratch(cfg.SendDepth, cfg.RecvDepth, q.Caps().SendSGE)
	}
	e.chain = NewChain(e.scratch.sends, e.scratch.width, e.slabs[0], keys[0].LKey, cfg.IDBase)
	if e.shared = cfg.Shared; e.shared != nil {
		e.entries = &e.shared.entries
		return e, nil
	}
	e.recv = newRecvRing(cfg.RecvDepth, cfg.EagerLimit, e.slabs[1], keys[1].LKey, cfg.IDBase|cfg.RecvBit)
	e.entries = &e.recv.entries
	return e, nil
}

// QP is the engine's queue pair.
func (e *Engine) QP() qp.QP { return e.qp }

// Prepare posts the receives, or takes the engine's share of the shared ones: then it
// is for the goroutine that drives those. The queue pair is in INIT or RTR.
func (e *Engine) Prepare() error {
	if e.shared != nil {
		return e.shared.enter(e)
	}
	wrs := e.recv.prepare(e.cfg.RecvDepth, e.mem)
	if len(wrs) < e.cfg.RecvDepth {
		return lacking(e.mem, e.cfg.EagerLimit)
	}
	n, err := e.qp.PostRecv(wrs)
	e.recv.posted += uint64(n)
	e.recv.batch = e.scratch.recvs // not before: this may be another goroutine
	return err
}

// Start says that both sides are ready: the queue pair is in RTS, and so is the
// peer's, or in RTR.
func (e *Engine) Start(now time.Duration) {
	if e.state == engineNew {
		e.state, e.lastHeard = engineUp, now
	}
}

// Up reports whether messages flow.
func (e *Engine) Up() bool { return e.state == engineUp && !e.leaving }

// Err is why the engine failed, nil while it has not.
func (e *Engine) Err() error { return e.err }

// Held is the number of large messages that wait for memory.
func (e *Engine) Held() int { return e.held }

// Sockets is the number of sockets.
func (e *Engine) Sockets() int { return e.table.live }

// cause is the error for what is asked of an engine that is not up.
func (e *Engine) cause() error {
	if e.err != nil {
		return e.err
	}
	return ErrClosed
}

// Send queues a message. b was allocated from the engine's memory and lkey is its
// key. done is called once: with nil, b is the caller's again; with an error, b
// is gone. tag names the message for Cancel, 0 is no name.
func (e *Engine) Send(s *Socket, b []byte, lkey mr.LKey, tag uint64, done func(error)) {
	e.queue(s, e.ofBuffer(b, lkey, tag, done))
}

// ofBuffer makes a message of one buffer, which it takes.
func (e *Engine) ofBuffer(b []byte, lkey mr.LKey, tag uint64, done func(error)) *outgoing {
	m := e.newOutgoing()
	m.buf, m.length, m.tag, m.done = b, len(b), tag, done
	m.one[0] = qp.SGE{Addr: mr.Addr(b), Length: uint32(len(b)), LKey: lkey}
	m.pieces = m.one[:]
	if b == nil {
		m.buf = []byte{} // not gathered
	}
	return m
}

// Gather queues a message that is made of pieces. They, and the memory they name,
// are the engine's until done is called, once; then they are the caller's again,
// whatever done is told.
func (e *Engine) Gather(s *Socket, pieces []qp.SGE, tag uint64, done func(error)) {
	m := e.newOutgoing()
	m.pieces, m.tag, m.done = pieces, tag, done
	for i := range pieces {
		m.length += int(pieces[i].Length)
	}
	e.queue(s, m)
}

func (e *Engine) queue(s *Socket, m *outgoing) {
	switch {
	case s.state != sockOpen || e.leaving:
		e.endOutgoing(m, e.closed(s))
		return
	case uint64(m.length) > e.cfg.MaxMessage:
		e.endOutgoing(m, ErrTooLarge)
		return
	}
	m.sock = s
	m.large = m.length > e.cfg.EagerLimit || len(m.pieces) > e.chain.PayloadSegments()
	s.sending++
	e.sending++
	s.queue.push(m)
	if e.startable(s) {
		e.sched.begin(s)
	}
}

// Cancel gives up the message with this tag, if it has not ended. What is wholly
// in the chain is still delivered.
func (e *Engine) Cancel(s *Socket, tag uint64) {
	for _, l := range []*outList{&s.queue, &s.requested, &s.writing, &s.fetching} {
		if m := l.byTag(tag); m != nil {
			e.cancel(m, ErrCanceled)
			return
		}
	}
}

func (e *Engine) cancel(m *outgoing, err error) {
	if m.known {
		// The peer knows nothing of it that it could forget.
	} else if m.state == sendRequested || m.state == sendOffered || m.state == sendWriting {
		// On the same queue pair as its WRITEs, hence after them.
		e.control(control{typ: wire.Cancel, id: m.sock.id, seq: m.seq})
	}
	e.endOutgoing(m, err)
}

func (e *Engine) cancelAll(s *Socket, err error) {
	for _, l := range []*outList{&s.writing, &s.fetching, &s.requested, &s.queue} {
		for l.head != nil {
			e.cancel(l.head, err)
		}
	}
}

// Goodbye ends the engine in good order: what is queued is sent until the time
// given, then GOAWAY, then the queue pair is closed.
func (e *Engine) Goodbye(by time.Duration) {
	if e.state == engineUp && !e.leaving {
		e.leaving, e.leaveBy = true, by
	}
	if e.state == engineNew {
		e.Fail(by, ErrClosed)
	}
}

// Deadline is when Tick wants to be called next, Never if it does not.
func (e *Engine) Deadline() time.Duration {
	d := min(e.drainBy, e.retryAt, e.leaveBy, e.flushBy)
	if e.state != engineUp {
		return d
	}
	for _, s := range e.lingering {
		d = min(d, s.lingerUntil)
	}
	if e.cfg.Keepalive > 0 && !e.pinged {
		d = min(d, e.lastHeard+e.cfg.Keepalive)
	}
	if e.cfg.PeerTimeout > 0 {
		d = min(d, e.lastHeard+e.cfg.PeerTimeout)
	}
	return d
}

// Tick does what is due.
func (e *Engine) Tick(now time.Duration) {
	if now >= e.drainBy {
		e.down()
		return
	}
	if e.state != engineUp {
		return
	}
	if now >= e.flushBy {
		e.Fail(now, e.flushErr)
		return
	}
	if e.goAwaySent && now >= e.leaveBy {
		e.Fail(now, ErrClosed) // the peer has no receive for GOAWAY
		return
	}
	if now >= e.retryAt {
		e.retryAt = Never
		e.replenish(now)
		e.Retry(now)
	}
	e.linger(now)
	quiet := now - e.lastHeard
	if e.cfg.PeerTimeout > 0 && quiet >= e.cfg.PeerTimeout {
		e.Fail(now, ErrPeerTimeout)
		return
	}
	if e.cfg.Keepalive > 0 && quiet >= e.cfg.Keepalive && !e.pinged {
		e.pinged = true
		e.control(control{typ: wire.Ping, a: uint64(now)})
	}
}

// Complete takes one completion of the engine's queue pair.
func (e *Engine) Complete(now time.Duration, c *cq.Completion) {
	if e.state == engineDown {
		return
	}
	if c.ID&e.cfg.RecvBit != 0 {
		e.completeRecv(now, c)
	} else {
		e.completeSend(now, c)
	}
	if e.state == engineFailed && e.chain.InFlight() == 0 && e.receiving() == 0 && (e.shared == nil || c.ID&e.cfg.RecvBit == 0) {
		e.down()
	}
}
