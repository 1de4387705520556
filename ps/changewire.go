package ps

import (
	"encoding/binary"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// changeStep is what a coordinator asks a replica to do.
type changeStep uint32

const (
	stepLook    changeStep = iota // nothing; coordinators with a lower ticket are refused from then on
	stepBegin                     // note what is pushed to the keys that leave
	stepBring                     // bring the rows that come
	stepFreeze                    // take no pushes to the keys that leave, for a while
	stepFinish                    // bring the last rows
	stepPrepare                   // make the freeze last
	stepCommit                    // the map is decided on
	stepOpen                      // serve the rows that came
	stepAbort                     // the map does not come
)

// changeRequest is a step, little-endian:
//
//	 0  u64  ticket of the coordinator: of this change, but for what an earlier one decided
//	 8  u64  of prepare, the incarnation that was frozen; of commit and open, the decided ticket
//	16  u64  of prepare, the position of the log at the freeze; of freeze, its length in ns
//	24  u32  step
//	28  u32  shard that is asked
//	32  u32  length of the text of the map, of begin, bring and commit
//	36  u32  number of sources, of bring
//	40  the text; then of each source its shard u32, the length of its address u32, and the address
type changeRequest struct {
	ticket, what, pos uint64
	step              changeStep
	shard             int
	m                 *Map
	text              []byte // of m
	sources           []stageSource
}

const changeHead = 40

func (r *changeRequest) append(b []byte) []byte {
	for _, v := range [...]uint64{r.ticket, r.what, r.pos} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, v := range [...]int{int(r.step), r.shard, len(r.text), len(r.sources)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	b = append(b, r.text...)
	for _, x := range r.sources {
		b = binary.LittleEndian.AppendUint32(b, uint32(x.shard))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(x.addr)))
		b = append(b, x.addr...)
	}
	return b
}

func parseChange(b []byte) (r changeRequest, err error) {
	short := archon.Errorf(archon.InvalidArgument, "request about a map of %d bytes is cut off", len(b))
	if len(b) < changeHead {
		return r, short
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	r.ticket, r.what, r.pos = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	r.step, r.shard = changeStep(u32(24)), int(u32(28))
	text, sources := int(u32(32)), int(u32(36))
	if b = b[changeHead:]; r.step > stepAbort || text > len(b) || sources > len(b)/8 {
		return r, short
	}
	r.text, b = b[:text], b[text:]
	if text > 0 {
		r.m = new(Map)
		if err := r.m.UnmarshalText(r.text); err != nil {
			return r, archon.Errorf(archon.InvalidArgument, "%v", err)
		}
	}
	for range sources {
		if len(b) < 8 || int(u32(4)) > len(b)-8 {
			return r, short
		}
		n := int(u32(4))
		r.sources = append(r.sources, stageSource{shard: int(u32(0)), addr: string(b[8 : 8+n])})
		b = b[8+n:]
	}
	if len(b) > 0 {
		return r, archon.Errorf(archon.InvalidArgument, "%d bytes follow a request about a map", len(b))
	}
	return r, nil
}

// changeState is what a replica answers to each step: how it stands after it. Little-endian:
//
//	 0  u64  its incarnation
//	 8  u64  the highest ticket that it heard of
//	16  u64  ticket of the change that brought its map
//	24  u64  ticket of the change that takes keys from it
//	32  u64  position of its log at the freeze
//	40  u64  ticket of the change that brings rows to it
//	48  u64  about how many of them are not here
//	56  u64  checksum of its map
//	64  u64  checksum of the map of the change that takes keys from it
//	72  u32  version of its map
//	76  u32  flags, see below
//	80  u32  its number; 84 u32 of how many replicas
//	88  what keeps it from getting on, as text
type changeState struct {
	inc, ballot, made, ticket, pos, stage, left, sum, next uint64
	version, flags                                         uint32
	self, replicas                                         int
	trouble                                                string
}

const stateHead = 88

const (
	stateJoining  = 1 << iota // it is not up to date
	stateFrozen               // no pushes to keys that leave
	stateCut                  // all before the freeze is at every replica
	statePrepared             // it stays frozen until the change is decided
	stateStaged               // the rows are here
	stateShut                 // what its map brought is not served yet
	stateSettled              // no replica serves by an older map
	stateBusy                 // it is still removing rows
)

func (s *changeState) is(flags uint32) bool { return s.flags&flags == flags }

func (s *changeState) append(b []byte) []byte {
	for _, v := range [...]uint64{s.inc, s.ballot, s.made, s.ticket, s.pos, s.stage, s.left, s.sum, s.next} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, v := range [...]uint32{s.version, s.flags, uint32(s.self), uint32(s.replicas)} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, s.trouble...)
}

func parseChangeState(b []byte) (s changeState, err error) {
	if len(b) < stateHead {
		return s, archon.Errorf(archon.Internal, "answer about a map of %d bytes, at least %d", len(b), stateHead)
	}
	for i, v := range [...]*uint64{&s.inc, &s.ballot, &s.made, &s.ticket, &s.pos, &s.stage, &s.left, &s.sum, &s.next} {
		*v = binary.LittleEndian.Uint64(b[8*i:])
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	s.version, s.flags, s.self, s.replicas = u32(72), u32(76), int(u32(80)), int(u32(84))
	s.trouble = string(b[stateHead:])
	if s.inc == 0 || s.replicas < 1 || s.replicas > maxReplicas || s.self >= s.replicas {
		return s, archon.Errorf(archon.Internal, "answer of replica %d of %d, incarnation %#x", s.self, s.replicas, s.inc)
	}
	return s, nil
}

// step does what a coordinator asks, unless one with a higher ticket came, and gives how
// the replica stands.
func (g *group) step(r *changeRequest, now time.Duration) (changeState, error) {
	o := &g.shard.own
	switch {
	case r.shard != o.shard:
		return changeState{}, archon.Errorf(archon.FailedPrecondition, "a change of the map of shard %d, this is shard %d", r.shard, o.shard)
	case o.m == nil:
		return changeState{}, archon.Errorf(archon.FailedPrecondition, "shard %d has no map: set Config.Map", o.shard)
	case r.m != nil && r.m.By != o.m.By:
		return changeState{}, archon.Errorf(archon.FailedPrecondition, "a map by %v, the shard's is by %v: load the rows anew", r.m.By, o.m.By)
	case (r.step == stepBegin || r.step == stepBring || r.step == stepCommit) && r.m == nil:
		return changeState{}, archon.Errorf(archon.InvalidArgument, "step %d names no map", r.step)
	case r.m != nil && 8+len(r.text) > len(g.log.ring)/4:
		return changeState{}, errLongMap
	}
	var err error
	if r.ticket >= g.ballot {
		g.ballot = r.ticket
		newer := r.m != nil && r.m.Version > o.m.Version && !g.joining
		switch r.step {
		case stepBegin:
			if newer {
				g.beginChange(r.ticket, r.m)
			}
		case stepBring:
			if newer {
				g.bring(r.ticket, r.m, r.sources)
			}
		case stepFreeze:
			g.freeze(r.ticket, now+time.Duration(r.pos), now)
		case stepFinish:
			g.finish(r.ticket)
		case stepPrepare:
			g.prepare(r.ticket, r.what, r.pos, now)
		case stepCommit:
			err = g.commit(r.what, r.m, now)
		case stepOpen:
			err = g.open(r.what, -1, now)
		case stepAbort:
			g.abort(r.ticket)
		}
	}
	return g.state(now), err
}

// state tells how the replica stands.
func (g *group) state(now time.Duration) changeState {
	g.expire(now)
	o, c := &g.shard.own, &g.change
	s := changeState{inc: g.inc, ballot: g.ballot, made: o.made, ticket: c.ticket, pos: c.pos, version: o.version(), sum: o.sum(), next: c.sum, self: g.self, replicas: len(g.peers)}
	if g.stage != nil {
		s.stage, s.left, s.trouble = g.stage.ticket, g.stage.left(), g.stage.says()
	}
	for _, f := range []struct {
		is   bool
		flag uint32
	}{
		{g.joining, stateJoining}, {c.frozen, stateFrozen}, {c.frozen && g.cut(), stateCut}, {c.prepared, statePrepared},
		{g.stage != nil && g.stage.done, stateStaged}, {o.before != nil, stateShut},
		{!g.joining && g.settled(g.mapPos, now), stateSettled}, {g.shard.sweep.removes(), stateBusy},
	} {
		if f.is {
			s.flags |= f.flag
		}
	}
	return s
}
