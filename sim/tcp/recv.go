package tcp

import "github.com/byteexpress/byteexpress/sim/des"

// receiver is the receiving half of an end.
type receiver struct {
	received uint64 // next byte expected
	taken    uint64 // bytes that the application has read
	told     uint64 // end of the window that the peer was told
	beyond   []span // that came out of order, by sequence number
	latestAt uint64 // within the one of them that grew last

	incoming messages

	owed     int      // segments not acknowledged
	quick    int      // acknowledgements to come that do not wait
	cameAt   des.Time // when data came last
	ackNow   bool     // do not wait
	ackBy    des.Time // Never: none is owed
	marked   bool     // state of the marks (DCTCP)
	ackStale bool     // something came since the last acknowledgement
	dups     int      // of that, what had come before
}

// receive takes the data of a segment.
func (c *Conn) receive(g *segment, marked bool) {
	if marked {
		c.n.stats.Marks++
	}
	if c.n.cfg.Control == DCTCP && marked != c.marked {
		if c.owed > 0 { // acknowledged as what they were (RFC 8257, 3.2)
			c.ackNow = true
			c.acknowledge(false)
		}
		c.marked = marked
	}
	now := c.n.k.Now()
	if now-c.cameAt > c.rto() { // the peer may begin again with one segment
		c.quick = quickAcks
	}
	c.cameAt = now
	c.owed++
	c.ackStale = true
	from, to := g.seq, g.seq+uint64(g.n)
	switch {
	case to <= c.received:
		c.quick = quickAcks // it came before
		c.dups++
	case from <= c.received:
		if len(c.beyond) > 0 { // it fills a gap, or a part of one (RFC 5681, 4.2)
			c.ackNow = true
		}
		c.received = to
		for len(c.beyond) > 0 && c.beyond[0].from <= c.received {
			c.received = max(c.received, c.beyond[0].to)
			c.beyond = append(c.beyond[:0], c.beyond[1:]...)
		}
		c.s.wake(c)
	default:
		c.keep(span{from, to})
		c.quick = quickAcks
	}
}

// keep adds a range to those beyond what is expected.
func (c *Conn) keep(s span) {
	c.latestAt = s.from
	i := 0
	for i < len(c.beyond) && c.beyond[i].to < s.from {
		i++
	}
	j := i
	for j < len(c.beyond) && c.beyond[j].from <= s.to {
		s.from, s.to = min(s.from, c.beyond[j].from), max(s.to, c.beyond[j].to)
		j++
	}
	if i == j {
		c.beyond = append(c.beyond, span{})
		copy(c.beyond[i+1:], c.beyond[i:])
	} else {
		c.beyond = append(c.beyond[:i+1], c.beyond[j:]...)
	}
	c.beyond[i] = s
}

// quickAcks is how many acknowledgements do not wait after one of a segment that was
// out of order, or came again, or after a pause of a retransmission timeout. Linux
// waits after such a pause if the connection is one of requests and replies; not to
// is in TCP's favour.
const quickAcks = 16

// acknowledge sends an acknowledgement if one is due, or has one follow in time.
func (c *Conn) acknowledge(timeout bool) {
	if !c.ackStale {
		return
	}
	cfg := &c.n.cfg
	if timeout || c.ackNow || c.quick > 0 || c.owed >= cfg.AckSegments {
		c.quick = max(c.quick-1, 0)
		c.n.stats.Acks++
		c.segment(c.next, 0)
		return
	}
	if c.ackBy == des.Never {
		c.ackBy = c.n.k.Now() + cfg.AckDelay
		c.arm(c.ackBy)
	}
}

// answer puts into a segment that leaves what came.
func (c *Conn) answer(g *segment) {
	g.ack = c.received
	c.told = max(c.told, c.taken+uint64(c.n.cfg.RecvBuffer))
	g.edge, g.echo = c.told, c.marked
	if len(c.beyond) > 0 {
		for i := range c.beyond { // the one that grew last goes first
			if b := c.beyond[i]; b.from <= c.latestAt && c.latestAt < b.to {
				g.spans[0], g.nspans = b, 1
			}
		}
		for i := len(c.beyond) - 1; i >= 0 && g.nspans < len(g.spans); i-- {
			if b := c.beyond[i]; g.nspans == 0 || b != g.spans[0] {
				g.spans[g.nspans] = b
				g.nspans++
			}
		}
	}
	g.dups, c.dups = c.dups, 0
	c.owed, c.ackNow, c.ackStale, c.ackBy = 0, false, false, des.Never
}

// took is the end of a read of some bytes.
func (c *Conn) took(size int) {
	c.taken += uint64(size)
	if open := c.taken + uint64(c.n.cfg.RecvBuffer); open-c.told >= uint64(c.n.cfg.RecvBuffer)/2 {
		c.ackNow, c.ackStale = true, true // the peer may wait for it
		c.acknowledge(false)
	}
	for m := c.incoming.head(); m != nil && m.end <= c.taken; m = c.incoming.head() {
		done := m.Message
		c.incoming.pop()
		if c.OnMessage != nil {
			c.OnMessage(done)
		}
	}
}
