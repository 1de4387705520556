package tcp

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// flight is a segment on its way.
type flight struct {
	seq    uint64
	n      int32
	sacked bool
	lost   bool // to be sent again
	again  bool // was sent again
	at     des.Time
}

// sender is the sending half of an end.
type sender struct {
	asked   uint64 // bytes of all messages
	written uint64 // of them, in the buffer
	una     uint64 // oldest byte not acknowledged
	next    uint64 // first byte not sent
	edge    uint64 // end of the peer's window

	toWrite, unacked messages
	writing, blocked bool

	out    []flight // from una on
	first  int      // of out
	sacked int      // bytes
	lost   int      // bytes to be sent again
	latest des.Time // when the latest segment that arrived was sent

	congestion
	clock
}

func (c *Conn) startSender() {
	c.edge = uint64(c.n.cfg.RecvBuffer)
	c.startCongestion(&c.n.cfg)
	c.startClock()
}

// pipe is how many bytes are in the network, as far as is known.
func (c *Conn) pipe() int { return int(c.next-c.una) - c.sacked - c.lost }

// burst is what the stack hands to the NIC as one.
type burst struct {
	c    *Conn
	seq  uint64
	n    int
	step int // bytes of all segments but the last
}

// pump sends what the windows let go: what was lost first.
func (c *Conn) pump() {
	cfg := &c.n.cfg
	now := c.n.k.Now()
	if c.next == c.una && c.next < c.written && !cfg.KeepWindow && c.sentAt > 0 && now-c.sentAt > c.rto() {
		c.cwnd = min(c.cwnd, cfg.InitialWindow*cfg.MSS)
	}
	c.resend(now)
	c.limited = false
	for c.next < c.written {
		n := int(min(c.written-c.next, uint64(max(cfg.TSOBytes, cfg.MSS))))
		room := c.cwnd - c.pipe()
		if open := int(int64(c.edge) - int64(c.next)); open < min(n, cfg.MSS) && open < room {
			break // the peer's window
		} else if open < n {
			n = open
		}
		if room < n {
			n = room
			c.limited = true
		}
		if n < cfg.MSS && c.next+uint64(max(n, 0)) < c.written {
			break // not even a full segment
		}
		if n > cfg.MSS && c.next+uint64(n) < c.written {
			n -= n % cfg.MSS
		}
		c.emit(c.next, n, now)
		for left := n; left > 0; left -= cfg.MSS {
			size := min(left, cfg.MSS)
			c.out = append(c.out, flight{seq: c.next, n: int32(size), at: now})
			c.next += uint64(size)
		}
	}
	c.most = max(c.pipe(), 0)
	c.setTimers(now)
}

// resend sends lost segments again, neighbours as one.
func (c *Conn) resend(now des.Time) {
	cfg := &c.n.cfg
	for i := c.first; i < len(c.out) && c.lost > 0; {
		f := &c.out[i]
		if !f.lost {
			i++
			continue
		}
		if room := c.cwnd - c.pipe(); room < int(f.n) && c.pipe() > 0 {
			return
		}
		from, n := f.seq, 0
		for ; i < len(c.out) && c.out[i].lost && n+int(c.out[i].n) <= max(cfg.TSOBytes, cfg.MSS); i++ {
			f := &c.out[i]
			if n > 0 && c.cwnd-c.pipe() < int(f.n) {
				break
			}
			f.lost, f.again, f.at = false, true, now
			c.lost -= int(f.n)
			n += int(f.n)
			c.n.stats.Retransmits++
			c.resent++
			if int(f.n) < cfg.MSS {
				i++
				break // a short one ends its burst
			}
		}
		c.emit(from, n, now)
	}
}

// emit has the stack and the driver send a range.
func (c *Conn) emit(seq uint64, n int, now des.Time) {
	k := c.n.cfg.Costs
	c.sentAt = now
	end := c.s.cpu.Do(int(c.core), hostcpu.TCP, now, k.SendSegment+k.Driver)
	c.n.k.At(end, c.n.burstKind, c.n.bursts.Put(burst{c, seq, n, c.n.cfg.MSS}), 0)
}

// leave is the moment when the NIC has a burst: it cuts it into segments.
func (n *Net) leave(b burst) {
	for left := b.n; left > 0; left -= b.step {
		size := min(left, b.step)
		n.stats.Segments++
		b.c.segment(b.seq, size)
		b.seq += uint64(size)
	}
}

// segment sends one segment, which acknowledges what came.
func (c *Conn) segment(seq uint64, size int) {
	g := c.n.newSegment()
	g.to, g.seq, g.n = c.peer, seq, size
	c.answer(g)
	c.s.host.SendDatagram(c.peer.s.host, &fabric.Datagram{
		Flow: uint64(c.id), Bytes: max(headerBytes+size, minFrame), Lossless: c.n.cfg.Lossless,
		ECN: c.n.cfg.Control == DCTCP && size > 0, Body: g,
	})
}

// acknowledged takes what a segment says of ours.
func (c *Conn) acknowledged(g *segment) {
	now := c.n.k.Now()
	c.edge = max(c.edge, g.edge)
	if g.ack < c.una || g.ack > c.next {
		return
	}
	before := c.una
	newest, fresh := des.Time(0), false // of segments that were sent once
	came := 0                           // bytes that are known to have arrived now
	early := false                      // a timeout was: what it took for lost arrives
	note := func(f *flight) {
		came += int(f.n)
		if !f.again && !f.lost {
			newest, fresh = max(newest, f.at), true
		}
		early = early || c.state == slow && f.lost && !f.again
		c.latest = max(c.latest, f.at)
	}
	for c.first < len(c.out) && c.out[c.first].seq < g.ack {
		f := &c.out[c.first]
		switch {
		case f.sacked:
			c.sacked -= int(f.n)
		default:
			note(f)
			if f.lost {
				c.lost -= int(f.n)
			}
		}
		c.first++
	}
	c.una = g.ack
	if c.first == len(c.out) {
		c.out, c.first = c.out[:0], 0
	} else if c.first > 64 && c.first > len(c.out)/2 {
		c.out, c.first = c.out[:copy(c.out, c.out[c.first:])], 0
	}
	for _, s := range g.spans[:g.nspans] {
		for i := c.find(s.from); i < len(c.out) && c.out[i].seq < s.to; i++ {
			f := &c.out[i]
			if f.sacked || f.seq < s.from {
				continue
			}
			note(f)
			if f.lost {
				f.lost = false
				c.lost -= int(f.n)
			}
			f.sacked = true
			c.sacked += int(f.n)
		}
	}
	if fresh {
		c.sample(now - newest)
	}
	advanced := c.una > before
	if came > 0 || advanced {
		c.progressed()
	}
	c.duplicated(g.dups, early)
	c.react(int(c.una-before), came, c.findLost(), g.echo)
	if c.state == recovery {
		c.findLost() // of a recovery that has just begun, too
	}
	if advanced {
		for m := c.unacked.head(); m != nil && m.end <= c.una; m = c.unacked.head() {
			done := m.Message
			c.unacked.pop()
			if c.OnAcked != nil {
				c.OnAcked(done)
			}
		}
	}
}

// find is the place of the first segment on its way that ends after a sequence
// number.
func (c *Conn) find(seq uint64) int {
	lo, hi := c.first, len(c.out)
	for lo < hi {
		mid := (lo + hi) / 2
		if f := &c.out[mid]; f.seq+uint64(f.n) > seq {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// dupThreshold is how many segments after one must have arrived for it to be lost
// (RFC 6675).
const dupThreshold = 3

// findLost marks what is lost: what was sent before something that arrived, if enough
// segments after it have arrived or some are known to be lost already. Of few
// segments with none to follow, one that arrived is enough (RFC 5827).
func (c *Conn) findLost() (found bool) {
	if c.sacked == 0 {
		return false
	}
	enough := dupThreshold
	if c.state == recovery {
		enough = 1
	} else if n := len(c.out) - c.first; c.next == c.written && n <= dupThreshold {
		enough = n - 1
	}
	high := len(c.out) - 1
	for ; high >= c.first && !c.out[high].sacked; high-- {
	}
	for i := c.first; i < high; i++ {
		f := &c.out[i]
		if f.sacked || f.lost {
			continue
		}
		if f.again && f.at >= c.latest || !f.again && high-i < enough {
			continue
		}
		f.lost = true
		c.lost += int(f.n)
		found = true
	}
	return found
}
