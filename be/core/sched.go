package core

import (
	"math"
	"math/bits"
)

// kind is one of the kinds of work that a socket waits with. They need different
// things: a message that begins needs a credit, a fragment needs room in the
// window. So they wait apart, and nobody looks at sockets that only the other
// could serve.
type kind uint8

const (
	starts kind = iota // messages to begin
	writes             // fragments to write
	reads              // fragments to read
	kinds
)

// What may be served, for next.
const (
	startable   = 1 << starts // small messages to begin
	fragmenting = 1<<writes | 1<<reads
	asking      = 1 << kinds // large messages to ask for
)

// The scheduler serves the socket that had least: of bytes, divided by its weight,
// of all kinds of work together. That is a deficit round robin whose rounds are
// short: a round, of an eighth to a quarter of the longest piece, gives each socket its
// weight's worth, and one that overdrew by a long piece sits out as many rounds as
// that takes. Instead of being asked in each, it waits at the place of the round
// in which its turn comes. So two sockets that have work, and are not held up by
// credits or window, never differ by more than the longest piece and one round,
// per weight.
//
// A socket that had nothing to do joins in at the present round: nobody saves up.
// A kind of work that lacks credits or room is passed over, and catches up
// afterwards: by up to the longest piece, what is beyond that is forgotten.
//
// To ask for a large message costs its socket nothing of that, and takes turns with all
// the rest: a socket whose messages have not been asked for early enough would not use
// its share. See asks for whose turn it is.
type scheduler struct {
	// solo is the socket that nobody else waits beside, with work of one kind, or nil.
	// What it is served moves its share alone: endSolo lets the rest follow. It is at
	// its wheel's round, or, if it found nobody when it came, in no wheel: its at is
	// soloSlot then. A socket that is always alone touches no wheel.
	solo   *Socket
	round  uint64 // the furthest that anybody was served in
	turn   int32  // pieces in a row from who is first in the present round
	of     kind   // what solo waits with
	served bool   // it was, since it came
	last   kind   // whose turn it was
	filled uint8  // kinds whose wheel is not empty
	lined  uint8  // whether finals and asks are empty: bits hasFinals, hasAsks
	asked  bool   // the last visit was to one of asks
	shift  uint8  // log2 of the share of a round
	*queues
}

// queues have all that wait, but for solo.
type queues struct {
	finals line // waiting writers whose final fragment waits for a credit
	asks   asks
	wheels [kinds]wheel
}

const (
	hasFinals = 1 << iota
	hasAsks
)

const (
	wheelSlots = 128
	// pieceRounds is how many rounds the longest piece takes at most: so a round has
	// room for two messages of 4 KiB of a socket, one right after another.
	pieceRounds = 8
	// late is how many rounds a kind may be behind. That and the longest piece are less
	// than a wheel, so that all have a place in it.
	late = pieceRounds

	// weightBits is the precision of shares: a byte of a socket of weight 1 counts
	// as 1 << weightBits.
	weightBits = 10
)

// Pieces that take little of a round go out several in a row, of one socket: so the
// goroutines at both ends that wait for them are woken once for all. But no more than
// turnMost, and no more than let all that wait have a turn within cycleMost pieces, if one
// each is not more than that.
const (
	turnMost  = 16
	cycleMost = 1024
)

// MaxWeight is the largest weight of a socket.
const MaxWeight = 1 << weightBits

// In Socket.at, finalsSlot stands for this line, soloSlot for none though it waits, 0 for
// none, asksSlot+i for the i-th slot of asks, and i+1 for the i-th slot of a wheel.
const (
	finalsSlot = 255
	soloSlot   = 254
	asksSlot   = wheelSlots + 1
)

// newScheduler is for pieces of at most longest bytes.
func newScheduler(longest int) scheduler {
	return scheduler{shift: uint8(weightBits + bits.Len(uint((longest-1)/pieceRounds))), queues: new(queues)}
}

// line is a list of sockets, first come first. The link is part of the socket, so
// nothing is allocated.
type line struct {
	head, tail *Socket
	n          int32
}

// link is a socket's place in a line.
type link struct{ prev, next *Socket }

func (s *Socket) link(k kind) *link {
	if k == starts {
		return &s.start
	}
	return &s.fragments[k-writes]
}

func (l *line) push(k kind, s *Socket) {
	*s.link(k) = link{prev: l.tail}
	if l.tail != nil {
		l.tail.link(k).next = s
	} else {
		l.head = s
	}
	l.tail = s
	l.n++
}

func (l *line) remove(k kind, s *Socket) {
	p := s.link(k)
	if p.prev != nil {
		p.prev.link(k).next = p.next
	} else {
		l.head = p.next
	}
	if p.next != nil {
		p.next.link(k).prev = p.prev
	} else {
		l.tail = p.prev
	}
	*p = link{}
	l.n--
}

// wheel has the sockets with work of one kind, each at the round in which its turn
// comes, modulo the number of slots.
type wheel struct {
	slots *[wheelSlots]line       // nil: there is one socket at most, in lone
	lone  line                    // stands for all slots
	due   [wheelSlots / 64]uint64 // slots that are not empty
	n     int                     // sockets in it
	pos   uint64                  // the wheel's round: none is due before
	skew  uint64                  // rounds that it has missed for good
}

// at is the line of a round.
func (w *wheel) at(pos uint64) *line {
	if w.slots == nil {
		return &w.lone
	}
	return &w.slots[pos%wheelSlots]
}

// makeSlots is due when there are two sockets: for one alone, slots would be most of its
// engine's memory.
func (c *scheduler) makeSlots() {
	if c.wheels[0].slots != nil {
		return
	}
	slots := new([kinds][wheelSlots]line)
	for k := range kinds {
		w := &c.wheels[k]
		w.slots = &slots[k]
		if s := w.lone.head; s != nil {
			w.lone = line{}
			w.slots[s.at[k]-1].push(k, s)
		}
	}
}

// first is how many slots from pos on the first socket is. There is one.
func (w *wheel) first() uint64 {
	i := int(w.pos % wheelSlots)
	word, bit := i/64, i%64
	if m := w.due[word] >> bit; m != 0 {
		return uint64(bits.TrailingZeros64(m))
	}
	if m := w.due[1-word]; m != 0 {
		return uint64(64 - bit + bits.TrailingZeros64(m))
	}
	return uint64(wheelSlots - bit + bits.TrailingZeros64(w.due[word]))
}

// settle brings a wheel's round as near to the present one as its sockets allow,
// and gives that of the first, as everybody counts them.
func (c *scheduler) settle(w *wheel) uint64 {
	if w.n == 0 {
		w.pos = c.round - w.skew
		return c.round
	}
	first := w.first()
	behind := c.round - w.skew - w.pos
	step := min(first, behind)
	w.pos += step
	if behind -= step; behind > late {
		w.skew += behind - late
	}
	return w.pos + w.skew + first - step
}

// beginners is the number of sockets with a message to begin.
func (c *scheduler) beginners() int { return c.waiting(starts) + int(c.asks.n) }

// waiting is the number of sockets with work of a kind in a wheel, or in its stead.
func (c *scheduler) waiting(k kind) int {
	if c.solo != nil && c.solo.at[k] == soloSlot {
		return 1
	}
	return c.wheels[k].n
}

// idle reports whether nobody waits.
func (c *scheduler) idle() bool { return c.solo == nil && c.filled == 0 && c.lined == 0 }

// busy is the number of sockets that wait with work, each counted once for each
// kind.
func (c *scheduler) busy() int {
	n := int(c.finals.n + c.asks.n)
	for k := range kinds {
		n += c.waiting(k)
	}
	return n
}

// endSolo goes before anything that moves a socket or looks at rounds.
func (c *scheduler) endSolo() {
	s := c.solo
	if s == nil {
		return
	}
	c.solo = nil
	if s.at[c.of] == soloSlot {
		if c.served {
			c.round = max(c.round, s.share>>c.shift)
		}
		c.settle(&c.wheels[c.of])
		c.place(c.of, s)
		return
	}
	w := &c.wheels[c.of]
	w.skew = s.share>>c.shift - w.pos
	c.round = max(c.round, w.pos+w.skew)
}

// add has a socket visited, unless it waits for that already.
func (c *scheduler) add(k kind, s *Socket) {
	if s.at[k] != 0 {
		return
	}
	if c.filled == 0 && c.solo == nil && c.lined&hasAsks == 0 {
		s.share = max(s.share, c.round<<c.shift)
		c.solo, c.of, c.served = s, k, false
		s.at[k] = soloSlot
		return
	}
	c.endSolo()
	s.share = max(s.share, c.round<<c.shift)
	if w := &c.wheels[k]; w.pos+w.skew != c.round {
		c.settle(w)
	}
	c.place(k, s)
}

// begin has a socket visited for the next message in its queue, which there is,
// unless it waits for that already.
func (c *scheduler) begin(s *Socket) {
	switch {
	case s.at[starts] != 0:
	case s.queue.head.large:
		c.endSolo()
		c.asks.push(s, c.shift)
		c.lined |= hasAsks
	default:
		c.add(starts, s)
	}
}

// place puts a socket at its round in a wheel that is settled.
func (c *scheduler) place(k kind, s *Socket) {
	w := &c.wheels[k]
	if w.n > 0 && w.slots == nil {
		c.makeSlots()
	}
	off := int64(s.share>>c.shift - w.pos - w.skew)
	slot := (w.pos + uint64(min(max(off, 0), wheelSlots-1))) % wheelSlots
	w.at(slot).push(k, s)
	w.due[slot/64] |= 1 << (slot % 64)
	w.n++
	c.filled |= 1 << k
	s.at[k] = uint8(slot) + 1
}

// remove takes a socket out, if it waits.
func (c *scheduler) remove(k kind, s *Socket) {
	at := s.at[k]
	switch {
	case at == 0:
		return
	case at == soloSlot:
		if c.served {
			c.round = max(c.round, s.share>>c.shift)
		}
		c.solo, s.at[k] = nil, 0
		return
	}
	c.endSolo()
	switch {
	case at == finalsSlot:
		if c.finals.remove(k, s); c.finals.n == 0 {
			c.lined &^= hasFinals
		}
	case asksAt(at):
		if c.asks.remove(s); c.asks.n == 0 {
			c.lined &^= hasAsks
		}
	default:
		w, slot := &c.wheels[k], at-1
		l := w.at(uint64(slot))
		if l.remove(k, s); l.head == nil {
			w.due[slot/64] &^= 1 << (slot % 64)
		}
		if w.n--; w.n == 0 {
			c.filled &^= 1 << k
		}
	}
	s.at[k] = 0
}

// awaitCredit has a socket whose next fragment is a final one wait for a credit.
func (c *scheduler) awaitCredit(s *Socket) {
	c.remove(writes, s)
	c.finals.push(writes, s)
	c.lined |= hasFinals
	s.at[writes] = finalsSlot
}

// resume ends awaitCredit.
func (c *scheduler) resume(s *Socket) {
	c.remove(writes, s)
	c.settle(&c.wheels[writes])
	c.place(writes, s)
}

// next gives the socket to visit, of the kinds of work that may go on, nil if there
// is none. If several are due in one round, kinds take turns.
func (c *scheduler) next(may uint8) (kind, *Socket) {
	if s := c.solo; s != nil && may>>(c.of&7)&1 != 0 {
		c.last, c.asked = c.of, false
		c.round = max(c.round, s.share>>c.shift)
		return c.of, s
	}
	return c.choose(may)
}

func (c *scheduler) choose(may uint8) (k kind, s *Socket) {
	if may&asking != 0 && c.lined&hasAsks != 0 && !c.asked {
		c.asked = true
		return starts, c.asks.first(c.shift)
	}
	if k := c.last; may&c.filled == 1<<k && c.solo == nil {
		// Mostly, those of one kind are in the present round.
		if w := &c.wheels[k]; w.pos+w.skew == c.round {
			if s := w.at(w.pos).head; s != nil && s.share>>c.shift <= c.round {
				c.asked = false
				return k, s
			}
		}
	}
	for {
		filled := may & c.filled
		if filled == 0 {
			if may&asking != 0 && c.lined&hasAsks != 0 {
				s = c.asks.first(c.shift)
			}
			return starts, s
		}
		var round uint64
		k, round = c.earliest(filled)
		w := &c.wheels[k]
		w.pos = round - w.skew
		c.round = max(c.round, round)
		s = w.at(w.pos).head
		if s.share>>c.shift <= round {
			c.last, c.asked = k, false
			return k, s
		}
		c.remove(k, s) // it was served with work of another kind
		c.place(k, s)
	}
}

// earliest is the kind with the socket that is due first, and the round in which it
// is. There are some of each of these kinds.
func (c *scheduler) earliest(filled uint8) (k kind, round uint64) {
	if filled&(filled-1) == 0 {
		k = kind(bits.TrailingZeros8(filled))
		return k, c.settle(&c.wheels[k])
	}
	round = math.MaxUint64
	for i := range kinds {
		j := c.last + 1 + i
		if j >= kinds {
			j -= kinds
		}
		if filled&(1<<j) == 0 {
			continue
		}
		if r := c.settle(&c.wheels[j]); r < round {
			k, round = j, r
		}
	}
	return k, round
}

// spend counts n bytes that the visited socket has sent, or asked for, and ends the
// visit. more says whether it has more work of this kind.
func (c *scheduler) spend(k kind, s *Socket, n int, more bool) {
	cost := s.shareOf(n)
	if c.solo == s {
		switch {
		case more:
			s.share += cost
			c.served = true
			return
		case s.at[k] == soloSlot:
			s.share += cost
			c.solo, s.at[k] = nil, 0
			return
		}
	}
	c.endSolo()
	w := &c.wheels[k]
	round := w.pos + w.skew
	s.share = max(s.share, round<<c.shift) + cost
	switch {
	case !more:
		c.remove(k, s)
	case w.n == 1 && c.filled == 1<<k && c.lined&hasAsks == 0:
		c.solo, c.of, c.served = s, k, true
	case s.share>>c.shift <= round: // once more in this round
		if c.turn++; c.turn >= turnMost || int(c.turn)*w.n >= cycleMost { // after the others
			c.turn = 0
			if l := w.at(w.pos); l.head != l.tail {
				l.remove(k, s)
				l.push(k, s)
			}
		}
	default:
		c.remove(k, s)
		c.place(k, s)
	}
}

// SetWeight gives a socket w shares instead of one; w is 1 to MaxWeight. It counts
// from the socket's next message or fragment on.
func (e *Engine) SetWeight(s *Socket, w int) { s.weight = uint16(min(max(w, 1), MaxWeight)) }
