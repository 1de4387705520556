package ps

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/archon"
)

// pulls is how rows leave a shard: replicas of their next owner pull them, each on its
// own, window by window. A window has the rows that were not sent yet, then those that were
// pushed to since, with what they are then; so it does not matter how often a row is
// sent. A window counts as received when the next request says so, and what is in it is
// sent again otherwise.
//
// Pushes note what they change, under the shard's lock. Windows are made under its lock
// for reading, one at a time.
type pulls struct {
	next *Map
	by   map[uint64]*pull // by puller
}

type pull struct {
	to      int  // shard
	at      int  // place in the index up to which rows were sent
	index   int  // length of the index, which rows were looked for in
	scanned bool // to its end
	dirty   map[uint64]struct{}
	queue   []uint64 // the same keys, in the order in which they came
	sent    []uint64 // keys of the last window
	serial  uint64   // of it
}

const (
	windowBytes = 64 << 10 // about how long a window of rows is
	maxPulls    = 1024     // pullers of a change, those that began anew included
	scanEntries = 1024     // of the index that are looked at for a window, at most
	pullBytes   = 32       // of a request
	windowHead  = 24

	flagClean = 1
)

// pullRequest asks for a window, little-endian:
//
//	 0  u64  ticket of the change
//	 8  u64  who asks: a number that another replica, or this one after a loss, does not use
//	16  u64  serial of the last window that it received; 0: none
//	24  u32  the asking shard
//	28  u32  the asked shard
type pullRequest struct {
	ticket, puller, ack uint64
	to, from            uint32
}

func (r *pullRequest) append(b []byte) []byte {
	for _, v := range [...]uint64{r.ticket, r.puller, r.ack, uint64(r.to) | uint64(r.from)<<32} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func parsePull(b []byte) (r pullRequest, err error) {
	if len(b) != pullBytes {
		return r, archon.Errorf(archon.InvalidArgument, "request for moving rows of %d bytes, must be %d", len(b), pullBytes)
	}
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	return pullRequest{u64(0), u64(8), u64(16), uint32(u64(24)), uint32(u64(24) >> 32)}, nil
}

func newPulls(next *Map) *pulls { return &pulls{next: next, by: map[uint64]*pull{}} }

var (
	// errPullLost has the puller begin anew.
	errPullLost = archon.Errorf(archon.FailedPrecondition, "no such change, or not all that was sent of it is remembered here: begin anew")
	errSweeps   = &archon.Error{Code: archon.Unavailable, Message: "rows are being removed here: ask again", Retryable: true}
	errPulls    = archon.Errorf(archon.ResourceExhausted, "%d replicas pull rows of one change: that is as many as may", maxPulls)
)

// rescan has all rows sent again: the index is about to be in another order.
func (p *pulls) rescan() {
	for _, x := range p.by {
		x.at, x.scanned = 0, false
	}
}

// touched notes that a row was changed.
func (p *pulls) touched(key, hash uint64) {
	if len(p.by) == 0 {
		return
	}
	to := p.next.owner(key, hash)
	for _, x := range p.by {
		if x.to == to {
			x.add(key)
		}
	}
}

func (x *pull) add(key uint64) {
	if _, is := x.dirty[key]; !is {
		x.dirty[key] = struct{}{}
		x.queue = append(x.queue, key)
	}
}

// pull appends the next window:
//
//	0   u64  its serial
//	8   u64  about how many rows there are left to send
//	16  u64  flags: 1 none are left, as of now
//	24  rows as in a snapshot
func (g *group) pull(dst []byte, r pullRequest) ([]byte, error) {
	s, p := g.shard, g.change.pulls
	o := &s.own
	if s.closed || g.joining || p == nil || r.ticket != g.change.ticket || int(r.from) != o.shard || r.to == r.from || int(r.to) >= len(p.next.Replicas) {
		return dst, errPullLost
	}
	if s.sweep.removes() {
		return dst, errSweeps
	}
	x := p.by[r.puller]
	if x == nil {
		if r.ack != 0 {
			return dst, errPullLost
		}
		if len(p.by) == maxPulls {
			return dst, errPulls
		}
		x = &pull{to: int(r.to), dirty: map[uint64]struct{}{}}
		p.by[r.puller] = x
	}
	if x.to != int(r.to) {
		return dst, errPullLost
	}
	if r.ack != x.serial {
		for _, key := range x.sent {
			x.add(key)
		}
	}
	x.sent = x.sent[:0]
	x.serial++
	at := len(dst)
	dst = append(dst, make([]byte, windowHead)...)
	dst = x.scan(s, dst, at+windowBytes)
	for len(dst) < at+windowBytes && len(x.queue) > 0 {
		key := x.queue[0]
		x.queue = x.queue[1:]
		delete(x.dirty, key)
		if n := s.table.find(key, Hash(key)); n != 0 {
			dst = x.send(s.table, dst, key, n)
		}
	}
	left := len(x.queue)
	if !x.scanned {
		left += 1 + int(uint64(s.table.rows)*uint64(x.index-x.at)/uint64(x.index))
	}
	binary.LittleEndian.PutUint64(dst[at:], x.serial)
	binary.LittleEndian.PutUint64(dst[at+8:], uint64(left))
	if left == 0 {
		binary.LittleEndian.PutUint64(dst[at+16:], flagClean)
	}
	return dst, nil
}

// scan sends rows that were not sent yet.
func (x *pull) scan(s *Shard, dst []byte, limit int) []byte {
	if x.index != len(s.table.index) && !x.scanned { // it has grown: rows are at other places
		x.at, x.index = 0, len(s.table.index)
	}
	for range scanEntries {
		if x.scanned || len(dst) >= limit {
			break
		}
		if e := s.table.index[x.at]; e.row != 0 {
			if hash := Hash(e.key); s.own.mine(e.key, hash) && s.pulls.next.owner(e.key, hash) == x.to {
				dst = x.send(s.table, dst, e.key, e.row)
			}
		}
		x.at++
		x.scanned = x.at == x.index
	}
	return dst
}

func (x *pull) send(t *table, dst []byte, key uint64, n uint32) []byte {
	x.sent = append(x.sent, key)
	return appendRow(dst, key, *t.version(n), t.slot(n))
}
