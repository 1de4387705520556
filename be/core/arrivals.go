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
// of many no more is under way than the bound and a message for each worker; and, until
// that has arrived, what workers took beyond their share before others had peers.

// Inbound is the bound on what the peers of a node, of all its workers together, were
// told to send and have not sent. Each worker has the share of its peers in it, and more
// while others do not use theirs. Any goroutine may use it.
type Inbound struct {
	limit int64
	each  int64
	used  atomic.Int64
	whole atomic.Int64 // of these messages, see patience
	peers atomic.Int64 // with a message in a line
	short atomic.Bool  // somebody waits
	seed  uint64
	poke  func()
}

// NewInbound makes a bound of limit bytes (InboundOf). Of very many peers some have other
// things to send first, so it is each bytes for every peer that wants to send, if that is
// more. The order of peers is drawn from the seed. poke is called when there is room again,
// by any worker's goroutine: then Arrivals.Admit is due on every worker. One worker alone
// needs none: nil.
func NewInbound(limit, each int, seed uint64, poke func()) *Inbound {
	return &Inbound{limit: int64(limit), each: int64(each), seed: seed, poke: poke}
}

// MinInbound is the least bound in bytes that InboundOf gives.
const MinInbound = 256 << 10

// InboundOf is a bound in bytes for a link of a rate in Gb/s, for messages of so many bytes
// a fragment: what the link carries in 10 us, about as long as it takes from the answer to
// an RTS, through both processors, until the message is there. Fast processors and slow
// links need less, but of a few fragments, or less than MinInbound, the messages of few senders
// would be too large a part.
func InboundOf(gbps float64, fragment int) int { return max(int(gbps*1250), 4*fragment, MinInbound) }

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

// call has all workers look for room, if one of them found none.
func (b *Inbound) call() {
	if b.short.Load() && b.short.Swap(false) {
		b.poke()
	}
}

// Arrivals is one worker's peers that want to send large messages. The worker's
// goroutine drives it.
type Arrivals struct {
	all     *Inbound
	own     int64 // bytes expected
	peers   int64 // with a message that is expected or waits
	invited arrivalLine
	turns   ring
	wake    func(Handler)
}

// NewArrivals makes those of one worker. wake is called with the handler of an engine
// whose Flush is due. It must not call Flush itself.
func NewArrivals(all *Inbound, wake func(Handler)) *Arrivals {
	return &Arrivals{all: all, turns: ring{round: 1}, wake: wake}
}

// patience is after how long a message that was to be sent, and was not, no longer keeps
// others waiting: its sender may be dead or slow. As all share the link, it is also four
// times as long as the link takes for all that was to be sent, and for a very long message
// a part of it: so a peer that only asks costs others little. The bound is what the link
// carries in 10 us, or more (InboundOf).
func (b *Inbound) patience() time.Duration {
	return minPatience + time.Duration(4*b.whole.Load()*int64(10*time.Microsecond)/b.limit)
}

const minPatience = 2 * time.Millisecond

// part is how much of a message patience counts.
func (b *Inbound) part(in *incoming) int64 { return min(int64(in.length), 64*b.limit) }

// Admit answers those whose turn it is.
func (a *Arrivals) Admit(now time.Duration) {
	if a.turns.n == 0 {
		return
	}
	by := now - a.all.patience()
	for in := a.invited.head; in != nil && in.since <= by; in = a.invited.head {
		a.forget(in)
	}
	for e := a.turns.first(); e != nil; e = a.turns.first() {
		if !a.take(int64(e.waiting.head.expects)) {
			return
		}
		a.invite(now, a.turns.pop(e))
		a.wake(e.h)
	}
	a.all.call()
}

// expect has a message that has memory wait for its turn, or answers it at once. nil
// Arrivals have no line.
func (a *Arrivals) expect(now time.Duration, in *incoming) {
	e := in.sock.e
	if a == nil {
		e.invite(in)
		return
	}
	in.expects = min(in.length, a.all.Most())
	if e.inLine++; e.inLine == 1 {
		a.peers++
		a.all.peers.Add(1)
	}
	if a.turns.n == 0 && a.take(int64(in.expects)) {
		a.invite(now, in)
		return
	}
	e.stats.Queued++
	if e.waiting.head == nil {
		a.turns.add(e)
	}
	e.waiting.push(in)
}

func (a *Arrivals) invite(now time.Duration, in *incoming) {
	in.since = now
	a.all.whole.Add(a.all.part(in))
	a.invited.push(in)
	in.sock.e.invite(in)
}

// take reserves n bytes. A worker always has something to receive, and its share: who
// has less, by however little, may take a message.
func (a *Arrivals) take(n int64) bool {
	if a.own == 0 || a.own < a.all.most()*a.peers/a.all.peers.Load() {
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
	l, e := in.line, in.sock.e
	if a == nil || l != &a.invited && l != &e.waiting {
		return
	}
	l.remove(in)
	if e.inLine--; e.inLine == 0 {
		a.peers--
		a.all.peers.Add(-1)
	}
	if l == &a.invited {
		a.own -= int64(in.expects)
		a.all.used.Add(-int64(in.expects))
		a.all.whole.Add(-a.all.part(in))
	} else if l.head == nil {
		a.turns.remove(e)
	}
	// The room is for those of this worker first: others have their share.
	if next := a.turns.first(); next != nil {
		a.wake(next.h)
	} else {
		a.all.call()
	}
}

// arrivalLine is messages, first come first.
type arrivalLine struct {
	head, tail *incoming
	n          int
}

func (l *arrivalLine) push(in *incoming) {
	in.line, in.linePrev, in.lineNext = l, l.tail, nil
	if l.tail != nil {
		l.tail.lineNext = in
	} else {
		l.head = in
	}
	l.tail = in
	l.n++
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
	l.n--
}
