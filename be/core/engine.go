package core

import (
	"math"
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
	engineFailed                    // the queue pair is in ERR and flushes, or is closed
	engineDown                      // everything is given back
)

// Never is the deadline of an engine that waits for nothing.
const Never = time.Duration(1<<63 - 1)

// Engine is one queue pair to one remote node, and all that shares it.
//
// With a thousand engines, each line of 64 bytes that a message touches is a miss of the
// cache. So what small messages need, and what every turn asks, is here, in the order of
// its use, what is sent first; the rest is elsewhere.
type Engine struct {
	qp    qp.QP
	chain Chain

	credits     Credits
	state       engineState
	leaving     bool   // Goodbye was called
	goAwaySent  bool   // and GOAWAY prepared
	flushing    bool   // flushErr is set
	pinged      bool   // see ping
	adaptive    bool   // the window is
	initiator   bool   // of cfg
	entered     bool   // the chain has slots
	capped      bool   // there is a cap
	inLines     bool   // there are arrivals
	short       uint8  // of what it is short, see stall
	packLimit   uint16 // of cfg
	sockets     int32  // in the table
	sending     int32  // outgoing messages whose callers were not told yet
	controlling int32  // control messages that wait: see controls
	peerBacklog uint32 // of cfg
	eagerLimit  uint32 // of cfg
	maxMessage  uint32 // of cfg
	recvBit     uint32 // of cfg, of the high half

	sched     scheduler
	alarm     time.Duration // the first of all deadlines but that of silence
	lastHeard time.Duration
	patience  time.Duration // with silence; 0: without end

	counts counts
	*engineRest

	// What arrives needs these besides.
	h        Handler
	shared   *SharedRecv // nil: recv has the receives
	entries  *entries    // of either
	recv     recvRing
	recent   *Socket // that had the last message; nil: none
	recentID uint32  // its number
	backlog  uint32  // of cfg
}

// engineRest is what few messages need of an engine: large ones, and then the first lines
// of it, of its cfg and of what they move in its stats.
type engineRest struct {
	bulk
	cfg    Config
	newest uint64 // SharedRecv.newest when this engine completed one last
	stats  Stats  // but for counts

	err       error // why it failed
	inLine    int   // messages of the peer that are in a line of arrivals
	turn      turn
	share     share   // of shared
	capWait   capWait // in cap
	slab      []byte  // of recv
	flushed   outList // messages whose last request was flushed: they end with the cause
	table     table
	tags      [2]uint32 // see TagTokens
	lingering []*Socket
	packed    arrivalLine // small messages that wait for memory, in the PACK that they came in

	leaveBy  time.Duration // when GOAWAY is prepared at the latest
	drainBy  time.Duration
	keepBy   time.Duration // until when messages that lack memory are kept, after the engine failed
	kept     bool          // they are all that it is there for: the queue pair is closed
	flushBy  time.Duration // when a flush without its cause is taken for the cause
	flushErr error
	round    uint64 // of walks over held, in which each is looked at
	stalls   [lacks]stall
}

// bulk is four lines that large messages need.
type bulk struct {
	window Window
	cap    *Cap

	controls  controlQueue
	transfers transfers

	held  arrivalLine // messages of the peer that wait for memory
	walk  uint64
	mem   Memory
	quota Quota

	parked   arrivalLine // messages of the peer that wait until others of their socket are taken
	waiting  arrivalLine // and those in the line of arrivals whose turn has not come
	arrivals *Arrivals
	retryAt  time.Duration // for memory
}

// NewEngine makes the engine of a queue pair in any state up to RTS.
func NewEngine(cfg Config, q qp.QP, mem Memory, quota Quota, h Handler) (*Engine, error) {
	e := &Engine{
		qp: q, h: h, credits: NewCredits(cfg.PeerDepth, cfg.RecvDepth, true), shared: cfg.Shared, adaptive: cfg.WindowTarget > 0,
		initiator: cfg.Initiator, recvBit: uint32(cfg.RecvBit >> 32), maxMessage: uint32(min(cfg.MaxMessage, math.MaxUint32)), eagerLimit: uint32(cfg.EagerLimit), packLimit: uint16(cfg.PackLimit),
		peerBacklog: uint32(cfg.PeerBacklog), backlog: uint32(cfg.Backlog), alarm: Never, capped: cfg.Cap != nil, inLines: cfg.Arrivals != nil,
		sched: newScheduler(max(cfg.Fragment, cfg.EagerLimit+wire.HeaderLen)),
		engineRest: &engineRest{
			bulk: bulk{mem: mem, quota: quota, cap: cfg.Cap, arrivals: cfg.Arrivals, window: NewWindow(cfg.Window), transfers: transfers{free: -1}, retryAt: Never},
			cfg:  cfg, drainBy: Never, leaveBy: Never, flushBy: Never,
		},
	}
	if a := cfg.Arrivals; a != nil {
		e.turn.slot = ringSlot(a.all.seed, cfg.IDBase>>32)
	}
	e.ping(false)
	e.credits.limit = int32(max(cfg.PeerDepth, cfg.PeerMost))
	if e.adaptive {
		e.window = NewAdaptiveWindow(min(cfg.Fragment, cfg.Window), cfg.Window, cfg.WindowTarget)
	}
	scratch := cfg.Scratch
	if !scratch.fits(&cfg, q) {
		scratch = NewScratch(cfg.SendDepth, cfg.RecvDepth, q.Caps().SendSGE, mem)
	}
	e.chain = NewChain(scratch, cfg.IDBase)
	if e.shared != nil {
		e.entries = &e.shared.entries
		return e, nil
	}
	var key mr.LKey
	var err error
	if e.slab, err = mem.Alloc(cfg.RecvDepth * wire.HeaderLen); err == nil {
		key, err = mem.LKey(e.slab)
	}
	if err != nil {
		e.freeMemory()
		return nil, err
	}
	e.recv = newRecvRing(cfg.RecvDepth, cfg.EagerLimit, e.slab, key, cfg.IDBase|cfg.RecvBit)
	e.entries = &e.recv.entries
	return e, nil
}

// QP is the engine's queue pair.
func (e *Engine) QP() qp.QP { return e.qp }

// Handler is what is told what happens.
func (e *Engine) Handler() Handler { return e.h }

// Prepare posts the receives, or takes the engine's share of the shared ones: then it
// is for the goroutine that drives those. The queue pair is in INIT or RTR.
func (e *Engine) Prepare() error {
	if e.shared != nil {
		return e.shared.enter(e)
	}
	// Not in the scratch: this may be another goroutine than the one whose that is.
	wrs := e.recv.prepare(e.cfg.RecvDepth, e.mem, make([]qp.RecvWR, 0, e.cfg.RecvDepth))
	if len(wrs) < e.cfg.RecvDepth {
		return lacking(e.mem, e.cfg.EagerLimit)
	}
	n, err := e.qp.PostRecv(wrs)
	e.recv.wasPosted(n)
	return err
}

// Start says that both sides are ready: the queue pair is in RTS, and so is the
// peer's, or in RTR. An engine for which there is no memory fails.
func (e *Engine) Start(now time.Duration) {
	if e.state != engineNew {
		return
	}
	e.state, e.lastHeard = engineUp, now
	if err := e.chain.scratch.enter(); err != nil {
		e.Fail(now, err)
		return
	}
	e.entered = true
}

// Up reports whether messages flow.
func (e *Engine) Up() bool { return e.state == engineUp && !e.leaving }

// Err is why the engine failed, nil while it has not.
func (e *Engine) Err() error { return e.err }

// Held is the number of messages of the peer that wait for memory.
func (e *Engine) Held() int { return e.held.n + e.packed.n }

// Sockets is the number of sockets.
func (e *Engine) Sockets() int { return int(e.sockets) }

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
	m := e.newOutgoing(tag)
	m.buf, m.length, m.done = b, len(b), done
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
	m := e.newOutgoing(tag)
	m.pieces, m.done, m.more = pieces, done, true
	for i := range pieces {
		m.length += int(pieces[i].Length)
	}
	e.queue(s, m)
}

func (e *Engine) queue(s *Socket, m *outgoing) {
	switch {
	case s.state != sockOpen || !e.Up():
		e.endOutgoing(m, e.closed(s))
		return
	case uint64(m.length) > uint64(e.maxMessage):
		e.endOutgoing(m, ErrTooLarge)
		return
	}
	m.sock = s
	if uint(m.length) > uint(e.eagerLimit) || len(m.pieces) > e.chain.PayloadSegments() {
		m.large, m.more = true, true
	}
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
func (e *Engine) Goodbye(now, by time.Duration) {
	if e.state == engineUp && !e.leaving {
		e.leaving, e.leaveBy = true, by
		e.setAlarm()
	}
	if e.state == engineNew {
		e.Fail(now, ErrClosed)
	}
	if e.state == engineFailed { // nobody takes what is kept
		if e.keepBy = 0; e.kept {
			e.drainBy = 0
			e.setAlarm()
		}
	}
}

// setAlarm finds the first deadline, when one of them has changed.
func (e *Engine) setAlarm() {
	e.alarm = min(e.drainBy, e.retryAt, e.leaveBy, e.flushBy)
	if e.state == engineUp {
		for _, s := range e.lingering {
			e.alarm = min(e.alarm, s.lingerUntil)
		}
	}
}

// retryBy has Tick look for memory at that time at the latest.
func (e *Engine) retryBy(t time.Duration) {
	if t < e.retryAt {
		e.retryAt = t
		e.alarm = min(e.alarm, t)
	}
}

// ping says whether the peer was asked for a sign of life and has given none: how long
// it may be silent depends on that.
func (e *Engine) ping(pinged bool) {
	e.pinged, e.patience = pinged, e.cfg.PeerTimeout
	if k := e.cfg.Keepalive; k > 0 && !pinged && (k < e.patience || e.patience <= 0) {
		e.patience = k
	}
}

// Deadline is when Tick wants to be called next, Never if it does not.
func (e *Engine) Deadline() time.Duration {
	if e.patience > 0 && e.state == engineUp {
		return min(e.alarm, e.lastHeard+e.patience)
	}
	return e.alarm
}

// Tick does what is due.
func (e *Engine) Tick(now time.Duration) {
	if now >= e.drainBy {
		e.drained(now)
		return
	}
	if e.state != engineUp {
		if now >= e.retryAt {
			e.retryAt = Never
			e.setAlarm()
			e.Retry(now)
		}
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
	e.setAlarm()
	quiet := now - e.lastHeard
	if e.cfg.PeerTimeout > 0 && quiet >= e.cfg.PeerTimeout {
		e.Fail(now, ErrPeerTimeout)
		return
	}
	if e.cfg.Keepalive > 0 && quiet >= e.cfg.Keepalive && !e.pinged {
		e.ping(true)
		e.control(control{typ: wire.Ping, a: uint64(now)})
	}
}

// Complete takes one completion of the engine's queue pair.
func (e *Engine) Complete(now time.Duration, c *cq.Completion) {
	if e.state > engineUp && (e.state == engineDown || e.kept) { // kept is in a line of the cache that no other completion needs
		return
	}
	if uint32(c.ID>>32)&e.recvBit != 0 {
		e.completeRecv(now, c)
	} else {
		e.completeSend(now, c)
	}
	if e.state == engineFailed && e.chain.InFlight() == 0 && e.receiving() == 0 && (e.shared == nil || uint32(c.ID>>32)&e.recvBit == 0) {
		e.drained(now)
	}
}
