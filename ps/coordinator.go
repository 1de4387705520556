package ps

import (
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// coordinator takes the replicas of all shards from one map to the next. It works in
// rounds: round gives a request for each of some replicas; the driver sends them, and tells
// what came back; judge then tells what is next. It does no I/O, and nothing that it
// remembers is needed by another one that takes its place.
//
// Until a change is decided, nothing is lost by giving it up. It is decided when every
// replica of every shard that loses keys has prepared it, which this coordinator alone can
// know; and by a look at all replicas of the shards between which keys move, another one
// finds out: if one of them has the new map, the change is decided, and if none has,
// and all have heard of the other one's ticket, it never will be.
//
// Of two different changes one is decided at most: each tells a replica of every shard of
// its ticket, and one with a lower ticket cannot prepare there any more. If that
// has prepared before, which may be everywhere, it may only be taken for dead when every
// replica was told, and none has its map; else it is to be completed first. If no keys
// move, a replica of each shard prepares the change.
type coordinator struct {
	from, to *Map
	text     []byte // of to
	fromText []byte
	sum      uint64
	nonce    uint32
	lease    time.Duration // of a freeze
	ticket   uint64
	decided  uint64 // ticket by which the new map came; 0: it is not decided
	phase    phase
	rounds   int // in this phase
	attempt  int
	left     uint64 // least number of rows to come that was seen
	stuck    int    // rounds since it became less
	last     uint64 // rows to come, in the last round
	still    int    // rounds since it changed
	members  []member
	source   []int // by shard: the member that gives rows
	why      error // why it does not get on
}

// member is a replica.
type member struct {
	shard       int
	addr        string
	loses, gets bool // keys move from or to its shard
	state       changeState
	inc, pos    uint64 // its log when the last rows were asked for
	absent      bool   // all replicas of the shard were found at other addresses
	ends        bool   // it has prepared another change, which is dead
	votes       bool   // no keys move, and it prepares for its shard all the same
	heard       bool   // in this round
	err         error  // why not
	missed      int    // rounds one after the other
}

type phase int

const (
	phaseLook    phase = iota // how do they stand?
	phaseFence                // has anything been decided, and can all be reached?
	phaseBegin                // losing shards note what is pushed
	phaseBring                // rows are brought
	phaseFreeze               // until all is at every replica
	phaseFinish               // the last rows
	phasePrepare              // then it is decided
	phaseTake                 // the new map, at the shards that get keys
	phaseGive                 // then at those that lose keys, and all others
	phaseOpen                 // what was brought is served
	phaseAbort                // this attempt is given up
	phaseDone
)

const (
	nearRows   = 256           // so few rows to come are brought while their shard is frozen
	mostRows   = 64 * nearRows // or so many, if it does not become fewer
	stuckAfter = 40            // rounds without fewer rows to come: this is as near as it gets
	mayMiss    = 3             // rounds without an answer before an attempt is given up; while frozen: 1
	mostFrozen = 200           // rounds
)

// order is a request for one member.
type order struct {
	member int
	req    changeRequest
}

func newCoordinator(from, to *Map, nonce uint32, lease time.Duration) (*coordinator, error) {
	for _, m := range []*Map{from, to} {
		if m == nil {
			return nil, errors.New("ps: rebalance: there is no map")
		}
		if err := m.Validate(); err != nil {
			return nil, err
		}
	}
	switch {
	case from.By != to.By:
		return nil, errors.Errorf("ps: rebalance from a map by %v to one by %v: load the rows anew", from.By, to.By)
	case to.Version <= from.Version:
		return nil, errors.Errorf("ps: rebalance from map version %d to %d: it must be higher", from.Version, to.Version)
	}
	text, err := to.MarshalText()
	if err != nil {
		return nil, err
	}
	fromText, err := from.MarshalText()
	if err != nil {
		return nil, err
	}
	c := &coordinator{from: from, to: to, text: text, fromText: fromText, sum: to.sum(), nonce: nonce, lease: lease}
	for shard := range max(len(from.Replicas), len(to.Replicas)) {
		loses := eachRange(from, to, func(a, b int) bool { return a == shard && b != shard })
		gets := eachRange(from, to, func(a, b int) bool { return b == shard && a != shard })
		seen := map[string]bool{}
		for _, m := range []*Map{from, to} {
			if shard >= len(m.Replicas) {
				continue
			}
			for _, e := range m.Replicas[shard] {
				if e.TCP == "" {
					return nil, errors.Errorf("ps: rebalance: replica %q of shard %d has no TCP address, which changes of the map need: listen on TCP too", e.String(), shard)
				}
				if !seen[e.TCP] {
					seen[e.TCP] = true
					c.members = append(c.members, member{shard: shard, addr: e.TCP, loses: loses, gets: gets})
				}
			}
		}
		if len(seen) == 0 || gets && len(to.Replicas[shard]) == 0 {
			return nil, errors.Errorf("ps: rebalance: shard %d has no replicas", shard)
		}
	}
	c.source = make([]int, max(len(from.Replicas), len(to.Replicas)))
	return c, nil
}

func (c *coordinator) enter(p phase) { c.phase, c.rounds = p, 0 }

// again gives the attempt up, and why: nothing is decided.
func (c *coordinator) again(err error) {
	c.why = err
	c.enter(phaseAbort)
}

// round gives the requests of a round.
func (c *coordinator) round() (list []order) {
	c.rounds++
	add := func(i int, step changeStep, change func(r *changeRequest)) {
		r := changeRequest{ticket: c.ticket, step: step, shard: c.members[i].shard}
		if change != nil {
			change(&r)
		}
		list = append(list, order{i, r})
	}
	withMap := func(r *changeRequest) { r.m, r.text = c.to, c.text }
	commit := func(r *changeRequest) { withMap(r); r.what = c.decided }
	for i := range c.members {
		m := &c.members[i]
		if m.heard = false; m.absent {
			continue
		}
		switch c.phase {
		case phaseLook:
			add(i, stepLook, func(r *changeRequest) { r.ticket = 0 })
		case phaseFence:
			switch {
			case m.gets && !m.loses && m.state.version < c.from.Version: // it was in none of the maps before
				add(i, stepCommit, func(r *changeRequest) { r.m, r.text, r.what = c.from, c.fromText, c.ticket })
			default:
				add(i, stepLook, nil)
			}
		case phaseBegin, phaseBring:
			if bring := c.phase == phaseBring && c.rounds%2 == 0; bring && m.gets {
				add(i, stepBring, func(r *changeRequest) { withMap(r); r.sources = c.sources(m.shard) })
			} else if !bring && (m.prepares() || m.ends) {
				add(i, stepBegin, withMap)
			}
		case phaseFreeze:
			if m.prepares() {
				add(i, stepFreeze, func(r *changeRequest) { r.pos = uint64(c.lease) })
			}
		case phaseFinish:
			if m.loses {
				add(i, stepFreeze, func(r *changeRequest) { r.pos = uint64(c.lease) })
			}
			if m.gets {
				add(i, stepFinish, nil)
			}
		case phasePrepare:
			if m.prepares() {
				add(i, stepPrepare, func(r *changeRequest) { r.what, r.pos = m.inc, m.pos })
			}
		case phaseTake:
			if m.gets && !m.loses {
				add(i, stepCommit, commit)
			}
		case phaseGive:
			add(i, stepCommit, commit)
		case phaseOpen:
			if m.gets {
				add(i, stepOpen, func(r *changeRequest) { r.what = c.decided })
			} else if m.state.version < c.to.Version {
				add(i, stepCommit, commit)
			}
		case phaseAbort:
			if m.prepares() || m.gets {
				add(i, stepAbort, nil)
			}
		}
	}
	for _, o := range list {
		c.members[o.member].err = errNoAnswer
	}
	return list
}

var errNoAnswer = errors.New("no answer")

// sources are the members from which a shard's replicas take rows.
func (c *coordinator) sources(to int) (list []stageSource) {
	seen := map[int]bool{}
	eachRange(c.from, c.to, func(a, b int) bool {
		if b == to && a != to && !seen[a] {
			seen[a] = true
			list = append(list, stageSource{shard: a, addr: c.members[c.source[a]].addr})
		}
		return false
	})
	return list
}

// took notes the answer of a member to this round's request.
func (c *coordinator) took(i int, s changeState) {
	m := &c.members[i]
	m.state, m.heard, m.err, m.missed = s, true, nil, 0
}

// lost notes that there was none.
func (c *coordinator) lost(i int, err error) {
	c.members[i].err = err
	c.members[i].missed++
}

// name is a member, for people.
func (m *member) name() string { return fmt.Sprintf("replica %s of shard %d", m.addr, m.shard) }

// whole tells which member keeps one of the shards between which keys move, or of the
// losing ones alone, from having all of its replicas heard in this round, and well.
func (c *coordinator) whole(losing bool) error {
	for shard := range c.source {
		replicas, seen := 0, map[int]bool{}
		var missing []string
		for i := range c.members {
			m := &c.members[i]
			if m.shard != shard || !m.loses && (losing || !m.gets) {
				continue
			}
			replicas = max(replicas, 1, m.state.replicas)
			switch {
			case !m.heard:
				missing = append(missing, fmt.Sprintf("%s: %v", m.name(), m.err))
			case m.state.is(stateJoining):
				missing = append(missing, m.name()+" is not up to date")
			case !losing && m.state.version != c.from.Version:
				missing = append(missing, fmt.Sprintf("%s has map version %d", m.name(), m.state.version))
			default:
				seen[m.state.self] = true
			}
		}
		switch {
		case len(seen) == replicas || replicas == 0:
		case len(missing) > 0:
			return errors.New(strings.Join(missing, "; ")) // all are needed, so that none serves by the old map when others do not
		default:
			return errors.Errorf("shard %d has %d replicas, and the maps name %d of them", shard, replicas, len(seen))
		}
	}
	return nil
}

// all tells whether f is true of every member that loses keys, or gets some; and was
// heard.
func (c *coordinator) all(which func(*member) bool, f func(*changeState) bool) bool {
	for i := range c.members {
		if m := &c.members[i]; which(m) && !m.absent && !(m.heard && f(&m.state)) {
			return false
		}
	}
	return true
}

// each tells whether f is true of a member of every shard.
func (c *coordinator) each(which func(*member) bool, f func(*changeState) bool) bool {
	good, need := map[int]bool{}, map[int]bool{}
	for i := range c.members {
		if m := &c.members[i]; which(m) {
			need[m.shard] = true
			good[m.shard] = good[m.shard] || m.heard && f(&m.state)
		}
	}
	for shard := range need {
		if !good[shard] {
			c.why = c.missing(shard)
			return false
		}
	}
	return true
}

// missing tells why a shard does not get on.
func (c *coordinator) missing(shard int) error {
	why := errors.Errorf("shard %d does not take map version %d", shard, c.to.Version)
	for i := range c.members {
		m := &c.members[i]
		s := &m.state
		if m.shard != shard {
			continue
		}
		if c.decided != 0 && m.loses && s.inc != 0 && s.version < c.to.Version && !s.is(stateJoining) && !s.is(statePrepared) {
			return errors.Errorf("%s has map version %d, and knows nothing of the change: it was restored from before, or without its rows; restore it by map version %d", m.name(), s.version, c.to.Version)
		}
		if m.err != nil {
			return errors.WithMessage(m.err, m.name())
		}
	}
	return why
}

// prepares tells whether a member has to prepare the change.
func (m *member) prepares() bool { return m.loses || m.votes }

func losing(m *member) bool  { return m.loses }
func getting(m *member) bool { return m.gets }
func anyone(*member) bool    { return true }
