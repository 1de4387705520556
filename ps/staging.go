package ps

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/byteexpress/byteexpress/archon"
)

// staging is how rows come to a replica that will own them: it pulls them from one replica
// of each shard that has them (pulls.go) into its own table, where they are not
// served before the map says that they are this shard's.
type staging struct {
	ticket  uint64
	next    *Map
	puller  uint64
	sources []stageSource
	turn    int  // the next source
	finish  bool // nothing is pushed to the rows any more: what is clean now stays so
	done    bool
	trouble error // why it does not get on; nil: it does
}

// stageSource is a replica of a shard that has rows.
type stageSource struct {
	shard  int
	addr   string
	ack    uint64 // serial of the last window that is in the table
	asked  bool   // the window on its way was asked for after finish
	clean  bool   // all are here
	left   uint64 // about how many are not
	waited bool   // a window is on its way
}

// stageLeft is what a replica says that knows nothing of how many rows come.
const stageLeft = math.MaxUint64

// bring begins to bring the rows of a change here, unless that is being done.
func (g *group) bring(ticket uint64, next *Map, sources []stageSource) {
	if g.stage != nil && g.stage.ticket == ticket || g.joining || next == nil {
		return
	}
	if g.stage != nil {
		g.dropStage()
	}
	g.pullers += 2
	g.stage = &staging{ticket: ticket, next: next, puller: g.inc + g.pullers, sources: sources}
	for i := range sources {
		sources[i].left = stageLeft
	}
}

// finish asks for the last rows: pushes to them are frozen, and at every replica.
func (g *group) finish(ticket uint64) {
	if st := g.stage; st != nil && st.ticket == ticket && !st.finish {
		st.finish = true
		for i := range st.sources {
			st.sources[i].clean = false
		}
		st.done = len(st.sources) == 0
	}
}

// left is about how many rows are still to come.
func (st *staging) left() uint64 {
	left := uint64(0)
	for i := range st.sources {
		if n := st.sources[i].left; left+n < left || n == stageLeft {
			return stageLeft
		}
		left += st.sources[i].left
	}
	return left
}

// nextPull gives a source that is to be asked; -1: none.
func (g *group) nextPull() int {
	if g.stage == nil || g.stage.done || g.joining || g.shard.sweep.removes() {
		return -1
	}
	st := g.stage
	for k := range st.sources {
		i := (st.turn + k) % len(st.sources)
		if x := &st.sources[i]; !x.waited && !(x.clean && st.finish) {
			st.turn = i + 1
			return i
		}
	}
	return -1
}

// askPull appends the request to a source.
func (g *group) askPull(dst []byte, i int) []byte {
	st := g.stage
	x := &st.sources[i]
	x.waited, x.asked = true, st.finish
	r := pullRequest{ticket: st.ticket, puller: st.puller, ack: x.ack, to: uint32(g.shard.own.shard), from: uint32(x.shard)}
	return r.append(dst)
}

// pulled takes a source's answer, or error, to the stage that asked it.
func (g *group) pulled(st *staging, i int, b []byte, err error) {
	x := &st.sources[i]
	if x.waited = false; g.stage != st || g.joining {
		return
	}
	if err == nil {
		err = g.takeWindow(x, b)
	}
	if st.trouble = err; archon.CodeOf(err) == archon.FailedPrecondition { // errPullLost
		fresh := make([]stageSource, len(st.sources))
		for i, x := range st.sources {
			fresh[i] = stageSource{shard: x.shard, addr: x.addr}
		}
		g.dropStage()
		g.bring(st.ticket, st.next, fresh)
		g.stage.trouble, g.stage.finish = err, st.finish
		return
	}
	st.done = st.finish
	for i := range st.sources {
		st.done = st.done && st.sources[i].clean
	}
}

// takeWindow puts the rows of a window into the table.
func (g *group) takeWindow(x *stageSource, b []byte) error {
	s := g.shard
	size := rowHead + 4*s.table.stride
	if len(b) < windowHead || (len(b)-windowHead)%size != 0 {
		return archon.Errorf(archon.Internal, "window of %d bytes of rows of %d", len(b), size)
	}
	for rows := b[windowHead:]; len(rows) > 0; rows = rows[size:] {
		key := binary.LittleEndian.Uint64(rows)
		hash := Hash(key)
		if s.own.owner(key, hash) != x.shard || g.stage.next.owner(key, hash) != s.own.shard {
			return archon.Errorf(archon.Internal, "key %#x does not move from shard %d to %d", key, x.shard, s.own.shard)
		}
		n, err := s.findOrCreate(key, hash)
		if err == nil {
			err = s.table.makeWritable(key, hash, n)
		}
		if err != nil {
			return err
		}
		s.table.set(s.table.find(key, hash), rows)
	}
	x.ack = binary.LittleEndian.Uint64(b)
	x.left = binary.LittleEndian.Uint64(b[8:])
	x.clean = x.asked && binary.LittleEndian.Uint64(b[16:])&flagClean != 0
	return nil
}

// says is how far the staging is, for people.
func (st *staging) says() string {
	if st == nil || st.trouble == nil {
		return ""
	}
	return fmt.Sprintf("bring rows: %v", st.trouble)
}
