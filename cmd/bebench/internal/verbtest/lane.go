package verbtest

import (
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/pages"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/pattern"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
)

// lane is one queue pair at one end with its message slots. out holds what this
// end sends or serves, in what it receives; either may be empty.
type lane struct {
	q       qp.QP
	conn    *rdmacm.Conn // with Params.CM: owns q
	psn     qp.PSN
	mem     []byte
	region  mr.Region
	out, in []byte
	remote  qpEnd
	outSeed uint64 // with the slot: seed of what we send
	inSeed  uint64 // and of what we expect

	// Initiator.
	posted    int64     // requests given to the queue
	signaled  int64     // of these, up to the last signaled one
	completed int64     // and completed for sure
	marks     []mark    // signaled requests that are outstanding, a ring
	markHead  int       // oldest
	markCount int       //
	granted   uint32    // receives that the peer ever posted for us
	began     time.Time // of the newest doorbell with a signaled request

	// Responder.
	received  int64
	reposted  int64 // receives ever posted
	grantsOut int   // grants sent and not completed
}

// mark is a signaled request: which one, and when it was posted.
type mark struct {
	upTo int64
	at   time.Time
}

func (l *lane) pushMark(m mark) {
	l.marks[(l.markHead+l.markCount)%len(l.marks)] = m
	l.markCount++
}

func (l *lane) popMark() mark {
	m := l.marks[l.markHead]
	l.markHead = (l.markHead + 1) % len(l.marks)
	l.markCount--
	return m
}

// newLane maps and registers a lane's memory and fills what it sends. The queue
// pair comes later.
func newLane(r *rig, f *flow, index int) (*lane, error) {
	l := &lane{
		psn:     qp.PSN(pattern.Seed(f.p.Seed, uint64(f.index), uint64(index), seedPSN)) & qp.PSNMask,
		outSeed: pattern.Seed(f.p.Seed, uint64(f.index), uint64(index), f.side()),
		inSeed:  pattern.Seed(f.p.Seed, uint64(f.index), uint64(index), f.side()^1),
		marks:   make([]mark, f.p.TxDepth+1),
	}
	needOut, needIn := f.areas()
	n := 0
	area := f.p.areaBytes(f.lay)
	if needOut {
		n += area
	}
	if needIn {
		n += area
	}
	var err error
	if l.mem, err = pages.Alloc(n); err != nil {
		return l, err
	}
	at := 0
	if needOut {
		l.out, at = l.mem[:area], area
		for s := range f.lay.slots {
			pattern.Fill(f.lay.slot(l.out, int64(s)), pattern.Seed(l.outSeed, uint64(s)))
		}
	}
	if needIn {
		l.in = l.mem[at : at+area]
		clear(l.in) // its pages are there before the clock runs
	}
	l.region, err = r.pd.Register(l.mem, f.p.Op.access())
	return l, err
}

// seedPSN tells the first PSN's seed from those of data.
const seedPSN = 1 << 32

// end describes the lane to the peer: the memory that the peer may reach.
func (l *lane) end(f *flow) qpEnd {
	area := l.in
	if f.p.Op == Read {
		area = l.out
	}
	return qpEnd{Num: l.q.Num(), PSN: l.psn, Addr: mr.Addr(area), RKey: uint32(l.region.RKey), Length: uint64(len(area))}
}

// common is what both ends can do: path MTU, READs outstanding from us, and from the
// peer.
func (p *Params) common(mine, peer *endpoint) (mtu qp.MTU, reads, destReads uint8) {
	mtu, _ = qp.MTUOf(min(mine.MTUBytes, peer.MTUBytes))
	n := min(mine.MaxReads, peer.MaxDestReads, 255)
	if p.Outs > 0 {
		n = min(n, p.Outs)
	}
	return mtu, uint8(n), uint8(min(mine.MaxDestReads, peer.MaxReads, 255))
}

// connect takes the lane's queue pair to RTS.
func (l *lane) connect(r *rig, p *Params, mine, peer *endpoint) error {
	mtu, reads, destReads := p.common(mine, peer)
	path := qp.Path{
		Port: r.portNum, SGIDIndex: uint8(r.gid.Index), Access: p.Op.access(), SendPSN: l.psn,
		DestNum: l.remote.Num, RecvPSN: l.remote.PSN, DGID: peer.GID, LID: peer.LID, Global: r.global(p, mine, peer),
		MTU: mtu, MaxReads: reads, MaxDestReads: destReads,
		AckTimeout: qp.AckTimeout(p.AckTimeout), SL: p.ServiceLevel, TrafficClass: p.TrafficClass,
		RetryCount: p.RetryCount, RNRTimer: qp.RNRTimer(p.RNRTimer), HopLimit: p.HopLimit, FlowLabel: p.FlowLabel,
	}
	return path.Connect(l.q)
}

// check compares the slot of message m with what the peer sent, and wipes it so
// that an old message does not pass for a new one. -1: good.
func (l *lane) check(f *flow, m int64) int {
	slot := f.lay.slot(l.in, m)
	bad := pattern.Check(slot, pattern.Seed(l.inSeed, uint64(m)%uint64(f.lay.slots)))
	clear(slot)
	return bad
}

// close destroys queue pair and memory.
func (l *lane) close(r *rig) error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	switch {
	case l.conn != nil:
		keep(l.conn.Close())
	case l.q != nil:
		keep(l.q.Close())
	}
	if l.region.Length != 0 {
		keep(r.pd.Deregister(l.region))
	}
	keep(pages.Free(l.mem))
	return first
}
