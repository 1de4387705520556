package tcp

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// pollQueue is the receive queue of a core, and the softirq that polls it.
type pollQueue struct {
	came    []arrival
	batch   []arrival // is worked off
	touched []*Conn   // by the batch
	busy    bool      // a poll is to come or under way
}

// arrive takes a frame; the core of its connection is interrupted a while later,
// unless it polls.
func (s *Stack) arrive(_ *fabric.Host, d *fabric.Datagram) {
	g := d.Body.(*segment)
	q := &s.queue[g.to.core]
	q.came = append(q.came, arrival{g: g, marked: d.Marked})
	if !q.busy {
		q.busy = true
		s.n.k.At(s.n.k.Now()+s.n.cfg.Costs.Interrupt, s.n.pollKind, int32(s.host.ID()), g.to.core)
	}
}

// poll takes what came, and finds out what it costs: neighbours of one connection
// are merged.
func (s *Stack) poll(core int32) {
	n, q := s.n, &s.queue[core]
	n.stats.Polls++
	q.batch, q.came = q.came, q.batch[:0]
	s.batch++
	cost := des.Time(0)
	for i := range q.batch {
		a := &q.batch[i]
		g, c := a.g, a.g.to
		if g.n == 0 {
			cost += n.cfg.Costs.Ack
			continue
		}
		if c.groBatch == s.batch && c.groSeq == g.seq && c.groBytes+g.n <= n.cfg.GROBytes && c.groMark == a.marked {
			c.groSeq += uint64(g.n)
			c.groBytes += g.n
			continue
		}
		a.first = true
		c.groBatch, c.groSeq, c.groBytes, c.groMark = s.batch, g.seq+uint64(g.n), g.n, a.marked
		cost += n.cfg.Costs.Aggregate
	}
	end := s.cpu.Do(int(core), hostcpu.TCP, n.k.Now(), cost)
	n.k.At(end, n.polledKind, int32(s.host.ID()), core)
}

// polled is the end of a poll: acknowledgements and data have their effect.
func (s *Stack) polled(core int32) {
	n, q := s.n, &s.queue[core]
	for i := range q.batch {
		a := &q.batch[i]
		c, g := a.g.to, a.g
		a.g = nil
		if !c.touched {
			c.touched = true
			q.touched = append(q.touched, c)
		}
		c.acknowledged(g)
		if g.n > 0 {
			if a.first {
				c.acknowledge(false)
			}
			c.receive(g, a.marked)
		}
		n.recycle(g)
	}
	for i, c := range q.touched {
		q.touched[i], c.touched = nil, false
		c.fill()
		c.pump()
		c.acknowledge(false) // what was sent has it already
	}
	q.touched = q.touched[:0]
	if len(q.came) == 0 {
		q.busy = false
		return
	}
	s.poll(core)
}

// app is the thread of a core that reads from connections.
type app struct {
	line  []*Conn
	first int
	awake bool
	size  int // of the read under way
}

// readBytes is how much a read takes at most.
const readBytes = 64 << 10

// wake has the thread read from a connection, in turn.
func (s *Stack) wake(c *Conn) {
	if c.inLine {
		return
	}
	a := &s.apps[c.core]
	c.inLine = true
	a.line = append(a.line, c)
	if !a.awake {
		a.awake = true
		s.startRead(c.core, s.n.cfg.Costs.Wake)
	}
}

func (s *Stack) startRead(core int32, cost des.Time) {
	n, a := s.n, &s.apps[core]
	c := a.line[a.first]
	a.size = int(min(c.received-c.taken, readBytes))
	cost += n.cfg.Costs.RecvCall + des.Time(a.size)*n.cfg.Costs.RecvByte
	n.k.At(s.cpu.Do(int(core), hostcpu.TCP, n.k.Now(), cost), n.readKind, int32(s.host.ID()), core)
}

// read is the end of a read.
func (s *Stack) read(core int32) {
	a := &s.apps[core]
	c := a.line[a.first]
	a.line[a.first] = nil
	if a.first++; a.first == len(a.line) {
		a.line, a.first = a.line[:0], 0
	}
	c.inLine = false
	c.took(a.size)
	if c.received > c.taken && !c.inLine {
		c.inLine = true
		a.line = append(a.line, c)
	}
	if a.first == len(a.line) {
		a.awake = false
		return
	}
	s.startRead(core, 0)
}
