package core

import (
	"sync/atomic"
	"time"
)

// A send window that adapts learns from what came back, and most large messages are
// over before anything does. What many peers send to one node at a time is known to
// that node alone, from their RTS. So it has them take turns: it answers as many as
// keep its link busy, and the others as these arrive, one of each peer in turn: a peer
// that asks for many at once, or that asks and sends nothing, has its own wait, and not
// those of others. What it answered may be sent at once, whatever the sender's window is,
// up to Inbound.Most of each message; the rest of a longer one is up to the window.
//
// So few senders, or one that sends now and then, have no round trips to wait for, and
// of many no more is under way than the bound.

// Inbound is the bound on what the peers of a node, of all its workers together, were
// told to send and have not sent. Any goroutine may use it.
type Inbound struct {
	limit int64
	each  int64
	used  atomic.Int64
	peers atomic.Int64 // with a message in a line
	short atomic.Bool  // somebody waits
	poke  func()
}

// NewInbound makes a bound of limit bytes: enough is what the link carries in a few
// round trips. Of very many peers some have other things to send first, so it is as
// many bytes for each peer that wants to send, if that is more. poke is called when there
// is room again, by any worker's goroutine: then Arrivals.Admit is due on every worker.
// One worker alone needs none: nil.
func NewInbound(limit, each int, poke func()) *Inbound {
	return &Inbound{limit: int64(limit), each: int64(each), poke: poke}
}

// Most is how many bytes of one message count: a quarter of all.
func (b *Inbound) Most() int { return int(b.limit / 4) }

// most is the bound at the moment.
func (b *Inbound) most() int64 { return max(b.limit, b.peers.Load()*b.each) }

func (b *Inbound) reserve(n int64) bool {
	for {
		used := b.used.Load()
		if used+n > b.most() {
			// Say so before the last look, so that a release in between is seen.
			if b.poke == nil || b.short.Swap(true) {
				return false
			}
		} else if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

func (b *Inbound) release(n int64) {
	b.used.Add(-n)
	if b.short.Load() && b.short.Swap(false) {
		b.poke()
	}
}

// Arrivals is the line of one worker's peers that want to send large messages. The
// worker's goroutine drives it.
type Arrivals struct {
	all     *Inbound
	workers int64
	own     int64 // bytes expected
	invited arrivalLine
	turns   turnLine
	wake    func(Handler)
}

// NewArrivals makes the line of one of so many workers. wake is called with the handler
// of an engine whose Flush is due. It must not call Flush itself.
func NewArrivals(all *Inbound, workers int, wake func(Handler)) *Arrivals {
	return &Arrivals{all: all, workers: int64(workers), wake: wake}
}

// patience is after how long a message that was to be sent, and was not, no longer keeps
// others waiting: its sender may be dead or slow, or the message long.
const patience = 2 * time.Millisecond

// Admit answers those whose turn it is.
func (a *Arrivals) Admit(now time.Duration) {
	if a.turns.head == nil {
		return
	}
	for in := a.invited.head; in != nil && now-in.since >= patience; in = a.invited.head {
		a.forget(in)
	}
	for e := a.turns.head; e != nil && a.take(int64(e.waiting.head.expects)); e = a.turns.head {
		in := e.waiting.head
		e.waiting.remove(in)
		a.turns.remove(e)
		if e.waiting.head != nil {
			a.turns.push(e)
		}
		a.invite(now, in)
		a.wake(e.h)
	}
}

// expect has a message that has memory wait for its turn, or answers it at once. nil
// Arrivals have no line.
func (a *Arrivals) expect(now time.Duration, in *incoming) {
	if a == nil {
		in.sock.e.invite(in)
		return
	}
	in.expects = min(in.length, a.all.Most())
	e := in.sock.e
	if e.inLine++; e.inLine == 1 {
		a.all.peers.Add(1)
	}
	if a.turns.head == nil && a.take(int64(in.expects)) {
		a.invite(now, in)
		return
	}
	e.stats.Queued++
	if e.waiting.head == nil {
		a.turns.push(e)
	}
	e.waiting.push(in)
}

func (a *Arrivals) invite(now time.Duration, in *incoming) {
	in.since = now
	a.invited.push(in)
	in.sock.e.invite(in)
}

// take reserves n bytes: a worker always has something to receive, and its share if it
// wants that much.
func (a *Arrivals) take(n int64) bool {
	if a.own == 0 || a.own+n <= a.all.most()/a.workers {
		a.all.used.Add(n)
	} else if !a.all.reserve(n) {
		return false
	}
	a.own += n
	return true
}

// forget takes a message out of the account, if it is in it: it has arrived, or never
// will.
func (a *Arrivals) forget(in *incoming) {
	l := in.line
	if l == nil {
		return
	}
	l.remove(in)
	e := in.sock.e
	if e.inLine--; e.inLine == 0 {
		a.all.peers.Add(-1)
	}
	if l != &a.invited {
		if l.head == nil {
			a.turns.remove(e)
		}
		return
	}
	a.own -= int64(in.expects)
	a.all.release(int64(in.expects))
	if next := a.turns.head; next != nil {
		a.wake(next.h)
	}
}

// arrivalLine is messages, first come first.
type arrivalLine struct{ head, tail *incoming }

func (l *arrivalLine) push(in *incoming) {
	in.line, in.linePrev, in.lineNext = l, l.tail, nil
	if l.tail != nil {
		l.tail.lineNext = in
	} else {
		l.head = in
	}
	l.tail = in
}

func (l *arrivalLine) remove(in *incoming) {
	if in.linePrev != nil {
		in.linePrev.lineNext = in.lineNext
	} else {
		l.head = in.lineNext
	}
	if in.lineNext != nil {
		in.lineNext.linePrev = in.linePrev
	} else {
		l.tail = in.linePrev
	}
	in.line, in.linePrev, in.lineNext = nil, nil, nil
}

// turnLine is engines with messages that wait, in the order of their turns.
type turnLine struct{ head, tail *Engine }

func (l *turnLine) push(e *Engine) {
	e.turnPrev, e.turnNext = l.tail, nil
	if l.tail != nil {
		l.tail.turnNext = e
	} else {
		l.head = e
	}
	l.tail = e
}

func (l *turnLine) remove(e *Engine) {
	if e.turnPrev != nil {
		e.turnPrev.turnNext = e.turnNext
	} else {
		l.head = e.turnNext
	}
	if e.turnNext != nil {
		e.turnNext.turnPrev = e.turnPrev
	} else {
		l.tail = e.turnPrev
	}
	e.turnPrev, e.turnNext = nil, nil
}
