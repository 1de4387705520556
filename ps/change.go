package ps

import (
	"bytes"
	"encoding/binary"
	"math"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// A map changes while the shards serve. A coordinator (see rebalance.go) takes the
// replicas of each shard through the steps of one change, which has a ticket: a number
// that is higher than those of the changes before. Each step may come twice, late, or to
// a replica that began anew meanwhile.
//
// A shard that loses keys: its replicas are told of the new map, and note the rows that
// pushes change (pulls.go). Then pushes to the keys that leave are frozen at all replicas:
// what any of them had applied reaches the others, and after that no replica takes one.
// A freeze ends by itself. Then all prepare, which does not: from there on the change is
// committed or aborted by a word alone, that goes through the log, and what is not in
// doubt is served meanwhile. A replica that has prepared is fetched from only while it
// has leases of all others: so none serves rows that left, when the new owner serves
// them, and none applies a push that another one refused.
//
// A shard that gets keys has copied their rows before (staging.go). It becomes their owner
// when the losing ones have committed everywhere.
//
// Everything else about a map is taken as it comes.
type change struct {
	ticket   uint64 // 0: there is none
	next     *Map
	sum      uint64 // of next
	leaves   bool   // keys leave with it
	pulls    *pulls
	frozen   bool
	prepared bool
	until    time.Duration // the freeze ends by itself, unless prepared
	pos      uint64        // of the log at the freeze
}

var (
	errFrozen  = &archon.Error{Code: archon.Unavailable, Message: "the map is changing, and rows that move take no pushes for now: retry", Retryable: true}
	errLongMap = archon.Errorf(archon.ResourceExhausted, "the map's text is longer than a quarter of the log: raise LogBytes")
)

// waitsForMap tells whether a request is worth trying again here when the map has changed.
func waitsForMap(err error) bool { return err == errFrozen || err == errNotOpen } //nolint:errorlint // nobody wraps them

// begin notes what change comes, in place of an earlier one.
func (g *group) beginChange(ticket uint64, next *Map) {
	if g.change.ticket == ticket {
		return
	}
	g.abort(g.change.ticket)
	if g.stage != nil && g.stage.ticket != ticket {
		g.dropStage()
	}
	g.change = change{ticket: ticket, next: next, sum: next.sum(), leaves: g.shard.own.loses(next), pulls: newPulls(next)}
	g.shard.pulls = g.change.pulls
}

// endChange forgets a change.
func (g *group) endChange() { g.change, g.shard.pulls = change{}, nil }

// expire ends a freeze that is over.
func (g *group) expire(now time.Duration) {
	if c := &g.change; c.frozen && !c.prepared && now >= c.until {
		c.frozen = false
	}
}

// freeze takes no more pushes to the keys that leave, until some time, or extends that.
func (g *group) freeze(ticket uint64, until, now time.Duration) {
	g.expire(now)
	c := &g.change
	if c.ticket != ticket || c.next == nil || g.joining {
		return
	}
	if !c.frozen {
		c.frozen, c.pos, c.until = true, g.log.next-1, until
	}
	c.until = max(c.until, until)
}

// cut tells whether all that was pushed here before the freeze is at every replica.
func (g *group) cut() bool {
	for i := range g.peers {
		if i != g.self && g.peers[i].acked < g.change.pos {
			return false
		}
	}
	return g.change.frozen
}

// prepare makes a freeze last until the change is decided, if it is still the one that
// the coordinator saw: every replica had the pushes of every other one then, and none
// came since.
func (g *group) prepare(ticket, inc, pos uint64, now time.Duration) {
	g.expire(now)
	if c := &g.change; c.ticket == ticket && c.frozen && g.inc == inc && c.pos == pos && !g.joining {
		c.prepared = true
	}
}

// freezes tells whether a push has to wait for the change.
func (g *group) freezes(req *request, now time.Duration) bool {
	if !g.change.frozen {
		return false
	}
	if g.expire(now); !g.change.frozen || g.shard.clients.look(req.id) == applied {
		return false
	}
	o := &g.shard.own
	for i := range req.count {
		key := req.key(i)
		if hash := Hash(key); o.mine(key, hash) && g.change.next.owner(key, hash) != o.shard {
			return true
		}
	}
	return false
}

// commit makes the next map that of the shard, and logs it for the other replicas; the
// coordinator has decided on it. It does nothing at a replica that is not ready, which
// learns of it from another one.
func (g *group) commit(made uint64, m *Map, now time.Duration) error {
	o := &g.shard.own
	switch {
	case g.joining || o.m == nil || o.m.Version >= m.Version || o.before != nil: // the latest map is to be opened first
		return nil
	case o.loses(m) && !(g.change.prepared && g.change.ticket == made):
		return nil
	case o.gains(m) && !g.staged(made):
		return nil
	case g.change.prepared && g.change.ticket != made && !o.loses(m) && !o.gains(m): // that other one may be decided
		return nil
	}
	entry := appendCommit(nil, made, m)
	if len(entry) > len(g.log.ring)/4 {
		return errLongMap
	}
	if err := g.room(len(entry), now); err != nil {
		return err
	}
	g.become(made, m, entry, -1)
	return nil
}

// staged tells whether the rows of a change are all here.
func (g *group) staged(ticket uint64) bool {
	return g.stage != nil && g.stage.done && g.stage.ticket == ticket
}

func (g *group) become(made uint64, m *Map, entry []byte, from int) {
	o := &g.shard.own
	if o.loses(m) || g.stage != nil && g.stage.ticket != made {
		g.shard.sweep.begin()
	}
	o.become(m, made)
	g.mapPos = g.log.add(entryCommit, entry, from)
	g.stage = nil
	g.endChange()
}

// open has the rows served that the latest map brought: they are served nowhere else.
func (g *group) open(made uint64, from int, now time.Duration) error {
	o := &g.shard.own
	if g.joining || o.made != made || o.before == nil {
		return nil
	}
	if err := g.room(8, now); err != nil && from < 0 {
		return err
	}
	o.open()
	g.mapPos = g.log.add(entryOpen, binary.LittleEndian.AppendUint64(nil, made), from)
	return nil
}

// abort gives a change up: it has not been decided, and will not be. A step of it that comes
// late is not taken any more: it would have rows brought that nobody gives.
func (g *group) abort(ticket uint64) {
	if ticket != 0 {
		g.ballot = max(g.ballot, ticket+1)
	}
	if g.stage != nil && g.stage.ticket == ticket {
		g.dropStage()
	}
	if ticket == 0 || g.change.ticket != ticket {
		return
	}
	g.log.add(entryAbort, binary.LittleEndian.AppendUint64(nil, ticket), -1) // another may have prepared
	g.endChange()
}

// dropStage gives up the rows that were brought here.
func (g *group) dropStage() {
	g.stage = nil
	g.shard.sweep.begin()
	if p := g.change.pulls; p != nil {
		p.rescan()
	}
}

// takeMap takes an entry of a peer's log that is no push.
func (g *group) takeMap(kind entryKind, b []byte, from int) error {
	if len(b) < 8 {
		return archon.Errorf(archon.InvalidArgument, "entry of kind %d and %d bytes", kind, len(b))
	}
	o := &g.shard.own
	ticket := binary.LittleEndian.Uint64(b)
	switch kind {
	case entryAbort:
		g.abort(ticket)
	case entryOpen:
		return g.open(ticket, from, math.MinInt64)
	case entryCommit:
		m := new(Map)
		if err := m.UnmarshalText(b[8:]); err != nil {
			return archon.Errorf(archon.InvalidArgument, "%v", err)
		}
		if o.m == nil || o.m.By != m.By || len(b) > len(g.log.ring)/4 {
			return archon.Errorf(archon.FailedPrecondition, "a replica has map version %d, which this one cannot take", m.Version)
		}
		if o.m.Version >= m.Version {
			return nil
		}
		if o.gains(m) && !g.staged(ticket) { // the peer has rows that this one lacks
			g.rejoin(from)
			return errJoining
		}
		g.become(ticket, m, bytes.Clone(b), from)
	}
	return nil
}

// appendCommit appends the entry of a valid map.
func appendCommit(b []byte, made uint64, m *Map) []byte {
	b = binary.LittleEndian.AppendUint64(b, made)
	text, err := m.MarshalText()
	if err != nil {
		return nil // takes no valid map
	}
	return append(b, text...)
}

// installChange takes what a copy of a peer has of changes. A map that is newer than the
// one that was here is told to the other replicas.
func (g *group) installChange(head *copyHead, newer bool, from int) {
	g.ballot = max(g.ballot, head.ballot)
	g.stage = nil
	g.endChange()
	if head.prepared {
		g.beginChange(head.ticket, head.next)
		g.change.frozen, g.change.prepared, g.change.pos = true, true, g.log.next-1
	}
	if head.staged {
		g.stage = &staging{ticket: head.ticket, next: head.next, finish: true, done: true}
	}
	o := &g.shard.own
	if !newer || o.m == nil || o.made == 0 {
		return
	}
	if entry := appendCommit(nil, o.made, o.m); len(entry) <= len(g.log.ring)/4 {
		g.mapPos = g.log.add(entryCommit, entry, from)
		if o.before == nil {
			g.mapPos = g.log.add(entryOpen, binary.LittleEndian.AppendUint64(nil, o.made), from)
		}
	}
}
