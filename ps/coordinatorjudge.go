package ps

import (
	"math"
	"slices"
	"time"

	"github.com/pkg/errors"
)

// judge looks at what a round has given. It tells how long to wait before the next one;
// a final error is that of a change that cannot be made.
func (c *coordinator) judge() (pause time.Duration, final error) {
	const soon, later = time.Millisecond, 20 * time.Millisecond
	switch c.phase {
	case phaseLook:
		return later, c.looked()
	case phaseFence:
		return later, c.fenced()
	case phaseBegin:
		next, moves := phaseBring, c.moves()
		if !moves {
			next = phaseFreeze
		}
		c.keep((*member).prepares, func(s *changeState) bool { return s.ticket == c.ticket && !(moves && s.is(stateBusy)) }, next)
		return later, nil
	case phaseBring:
		if c.rounds%2 == 0 {
			c.brought()
		} else {
			c.missed(mayMiss)
		}
		return later, nil
	case phaseFreeze:
		for i := range c.members {
			m := &c.members[i]
			m.inc, m.pos = m.state.inc, m.state.pos
		}
		if c.moves() {
			c.keep(losing, c.frozen, phaseFinish)
		} else {
			c.keep((*member).prepares, func(s *changeState) bool { return s.ticket == c.ticket && s.is(stateFrozen) }, phasePrepare)
		}
		c.thaw()
	case phaseFinish:
		if !c.all(losing, c.frozen) || !c.same() {
			c.again(c.anyMissing(losing, "pushes went on before all rows were brought"))
			break
		}
		c.keep(getting, func(s *changeState) bool { return s.stage == c.ticket && s.is(stateStaged) }, phasePrepare)
		c.thaw()
	case phasePrepare:
		c.prepared()
	case phaseTake:
		if c.each(func(m *member) bool { return m.gets && !m.loses }, c.has) {
			c.enter(phaseGive)
		}
		c.lookAgain()
	case phaseGive:
		if c.each(losing, func(s *changeState) bool { return c.has(s) && s.is(stateSettled) }) && c.each(getting, c.has) {
			c.enter(phaseOpen)
		}
		c.lookAgain()
	case phaseOpen:
		if c.each(getting, func(s *changeState) bool { return c.has(s) && !s.is(stateShut) }) && c.everywhere() {
			c.enter(phaseDone)
		}
	case phaseAbort:
		c.attempt++
		c.enter(phaseLook)
		return c.lease/2 + time.Duration(c.attempt%8)*later, nil
	}
	if c.rounds == 0 { // of the next phase
		return 0, nil
	}
	return soon, nil
}

func (c *coordinator) frozen(s *changeState) bool {
	return s.ticket == c.ticket && s.is(stateFrozen|stateCut)
}

// same tells whether losing shards have been frozen without a break since the last rows
// were asked for.
func (c *coordinator) same() bool {
	for i := range c.members {
		if m := &c.members[i]; m.loses && !m.absent && (m.inc != m.state.inc || m.pos != m.state.pos) {
			return false
		}
	}
	return true
}

// has tells whether a replica has the new map, or a later one.
func (c *coordinator) has(s *changeState) bool {
	return s.version > c.to.Version || s.version == c.to.Version && s.sum == c.sum
}

// lookAgain has a change that does not get on looked at as by another coordinator: if all
// replicas of a shard began anew, nobody may have the rows that it was to get.
func (c *coordinator) lookAgain() {
	if c.rounds >= 40 {
		c.enter(phaseLook)
	}
}

// everywhere tells whether a replica of each shard has the new map.
func (c *coordinator) everywhere() bool {
	for shard := range c.source {
		has := false
		for i := range c.members {
			has = has || c.members[i].shard == shard && c.has(&c.members[i].state)
		}
		if !has {
			c.why = c.missing(shard)
			return false
		}
	}
	return true
}

// looked sees how the replicas stand, and draws a ticket.
func (c *coordinator) looked() error {
	highest, shut := uint64(0), (*member)(nil)
	for i := range c.members {
		m := &c.members[i]
		m.absent = false
		if !m.heard {
			continue
		}
		s := &m.state
		highest = max(highest, s.ballot)
		switch {
		case s.version > c.to.Version:
			return errors.Errorf("ps: rebalance to map version %d: %s has %d already", c.to.Version, m.name(), s.version)
		case s.version == c.to.Version && s.sum != c.sum:
			return errors.Errorf("ps: rebalance to map version %d: %s has another map of that version: take a higher one", c.to.Version, m.name())
		case s.version != c.to.Version && s.is(stateShut):
			shut = m
		case s.version > c.from.Version && s.version < c.to.Version:
			return errors.Errorf("ps: rebalance from map version %d: %s has %d: begin from that", c.from.Version, m.name(), s.version)
		}
	}
	if shut != nil { // by the change before, or it was away and is about to hear that this is over
		c.why = errors.Errorf("ps: rebalance: the change of %s to map version %d is not complete: run that again first", shut.name(), shut.state.version)
		if c.rounds >= stuckAfter && !slices.ContainsFunc(c.members, func(m member) bool {
			return m.heard && m.shard == shut.shard && m.state.version >= shut.state.version && !m.state.is(stateShut)
		}) {
			return c.why
		}
		return nil
	}
	c.ticket = (highest>>32+1)<<32 | uint64(c.nonce)
	c.enter(phaseFence)
	return nil
}

// fenced sees whether the change was decided before.
func (c *coordinator) fenced() error {
	if c.all(anyone, func(s *changeState) bool { return c.has(s) && !s.is(stateShut) }) {
		c.enter(phaseDone)
		return nil
	}
	made := uint64(0)
	for i := range c.members {
		m := &c.members[i]
		m.votes = false
		if m.heard && c.has(&m.state) && (m.loses || m.gets || m.state.made != 0 && !c.moves()) {
			if made = m.state.made; made == 0 {
				return errors.Errorf("ps: rebalance: %s began with map version %d, and without the rows that are its own by that: start it with the map in force", m.name(), c.to.Version)
			}
		}
	}
	switch {
	case made != 0:
		c.decided = made
		c.enter(phaseTake)
	case c.outbid():
		c.again(errOutbid)
	default:
		err := c.whole(false)
		if err == nil {
			err = c.alone()
		}
		if err != nil {
			c.why = err
			if c.rounds >= mayMiss {
				c.again(err)
			}
			return nil
		}
		for i := range c.members {
			m := &c.members[i]
			m.absent = (m.loses || m.gets) && !m.heard
		}
		if !c.moves() {
			c.elect()
		}
		for shard := range c.source {
			c.source[shard] = c.pick(shard)
		}
		c.decided, c.left, c.stuck, c.still = 0, math.MaxUint64, 0, 0
		c.enter(phaseBegin)
	}
	return nil
}

// alone tells why there may be another change, if so.
func (c *coordinator) alone() error {
	type replica struct{ shard, self int }
	seen, some := map[replica]bool{}, make([]bool, len(c.source))
	replicas := make([]int, len(c.source))
	var other *member
	for i := range c.members {
		m := &c.members[i]
		s := &m.state
		replicas[m.shard] = max(replicas[m.shard], 1, s.replicas)
		if m.ends = false; !c.upToDate(m) {
			continue
		}
		seen[replica{m.shard, s.self}], some[m.shard] = true, true
		if s.is(statePrepared) && s.next != c.sum {
			other, m.ends = m, true
		}
	}
	if shard := slices.Index(some, false); shard >= 0 {
		return errors.WithMessagef(c.missing(shard), "no replica of shard %d is up to date, with map version %d at most", shard, c.from.Version)
	}
	all := 0
	for _, n := range replicas {
		all += n
	}
	if other != nil && len(seen) < all {
		return errors.Errorf("%s has prepared another change of the map: make that again first, or have all replicas up", other.name())
	}
	return nil
}

// upToDate tells whether a member is heard, and as far as the map before or the new one. One
// that has prepared a map up to that before, and does not have it, is to learn of it from
// its peers: giving that map up there would have rows served that have left.
func (c *coordinator) upToDate(m *member) bool {
	s := &m.state
	if !m.heard || s.is(stateJoining) || s.version < c.from.Version && s.is(statePrepared) {
		return false
	}
	return s.version <= c.from.Version || c.has(s)
}

// moves tells whether keys move.
func (c *coordinator) moves() bool {
	return slices.ContainsFunc(c.members, func(m member) bool { return m.loses })
}

// elect chooses who prepares a change by which no keys move: a replica of each shard.
func (c *coordinator) elect() {
	seen := map[int]bool{}
	for i := range c.members {
		m := &c.members[i]
		if m.votes = c.upToDate(m) && m.state.version <= c.from.Version && !seen[m.shard]; m.votes {
			seen[m.shard] = true
		}
	}
}

var errOutbid = errors.New("another coordinator has begun a change")

// outbid tells whether another coordinator has come.
func (c *coordinator) outbid() bool {
	for i := range c.members {
		if m := &c.members[i]; m.heard && m.state.ballot > c.ticket {
			return true
		}
	}
	return false
}

// pick gives the member of a shard that gives rows: another one at each attempt.
func (c *coordinator) pick(shard int) int {
	var of []int
	for i := range c.members {
		if m := &c.members[i]; m.shard == shard && !m.absent {
			of = append(of, i)
		}
	}
	return of[c.attempt%len(of)]
}

// keep goes to the next phase when f is true of all, and gives the attempt up when some
// are not heard for too long.
func (c *coordinator) keep(which func(*member) bool, f func(*changeState) bool, next phase) {
	switch {
	case c.outbid():
		c.again(errOutbid)
	case c.all(which, f):
		c.enter(next)
	case c.phase == phaseBegin:
		c.missed(mayMiss)
	default:
		c.missed(1)
	}
}

// missed gives the attempt up when some member is not heard for so many rounds.
func (c *coordinator) missed(rounds int) {
	for i := range c.members {
		if m := &c.members[i]; (m.prepares() || m.gets) && !m.absent && m.missed >= rounds {
			c.again(errors.WithMessage(m.err, m.name()))
			return
		}
	}
}

// anyMissing names a member that was not heard, or gives another reason.
func (c *coordinator) anyMissing(which func(*member) bool, reason string) error {
	for i := range c.members {
		if m := &c.members[i]; which(m) && !m.absent && !m.heard {
			return errors.WithMessage(m.err, m.name())
		}
	}
	return errors.New(reason)
}

// thaw bounds how long pushes wait for a change.
func (c *coordinator) thaw() {
	if (c.phase == phaseFreeze || c.phase == phaseFinish) && c.rounds >= mostFrozen {
		c.again(errors.New("replicas did not exchange their last pushes, or rows, in time"))
	}
}

// brought sees how many rows are still to come.
func (c *coordinator) brought() {
	left, all, busy := uint64(0), true, false
	for i := range c.members {
		m := &c.members[i]
		if !m.gets || m.absent {
			continue
		}
		all = all && m.heard && m.state.stage == c.ticket
		left, busy = max(left, m.state.left), busy || m.state.is(stateBusy)
		if m.state.trouble != "" {
			c.why = errors.Errorf("%s: %s", m.name(), m.state.trouble)
		}
	}
	if c.stuck++; left < c.left {
		c.left, c.stuck = left, 0
	}
	if c.still++; left != c.last || busy {
		c.last, c.still = left, 0
	}
	switch {
	case c.outbid():
		c.again(errOutbid)
	case all && (left <= nearRows || c.stuck >= stuckAfter && left <= mostRows):
		c.enter(phaseFreeze)
	case c.still >= 4*stuckAfter:
		if c.why == nil {
			c.why = errors.New("no rows come")
		}
		c.again(c.why)
	default:
		c.missed(mayMiss)
	}
}

// prepared decides, or gives the attempt up: a replica that has heard and has not
// prepared will not.
func (c *coordinator) prepared() {
	ok := func(s *changeState) bool { return s.ticket == c.ticket && s.is(statePrepared) }
	if c.whole(true) == nil && c.all((*member).prepares, ok) {
		c.decided = c.ticket
		c.enter(phaseTake)
		return
	}
	for i := range c.members {
		if m := &c.members[i]; m.prepares() && m.heard && !ok(&m.state) {
			c.again(errors.Errorf("%s is not frozen any more", m.name()))
			return
		}
	}
	c.again(c.anyMissing((*member).prepares, "not all have prepared"))
}
