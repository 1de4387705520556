package tcp

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// Message is what one side sent by one call.
type Message struct {
	Size int
	Tag  uint64   // of the sender's choice
	Sent des.Time // when Send was called
}

// Conn is one end of a connection.
type Conn struct {
	// OnMessage is called when the application has read a message whole, on the
	// connection's core. May be nil.
	OnMessage func(m Message)
	// OnAcked is called when the peer's stack has acknowledged a message. May be nil.
	OnAcked func(m Message)

	n    *Net
	s    *Stack
	peer *Conn
	id   int32
	core int32

	sender
	receiver

	touched  bool // by the poll under way
	inLine   bool // to be read from
	groBatch int  // the poll that last merged
	groSeq   uint64
	groBytes int
	groMark  bool

	timerAt des.Time // of the event that is to come
}

// bounded is a message that ends at a sequence number.
type bounded struct {
	Message
	end uint64
}

// messages is a queue of messages.
type messages struct {
	list  []bounded
	first int
}

func (q *messages) push(m bounded) { q.list = append(q.list, m) }

func (q *messages) head() *bounded {
	if q.first == len(q.list) {
		return nil
	}
	return &q.list[q.first]
}

func (q *messages) pop() {
	q.first++
	switch {
	case q.first == len(q.list):
		q.list, q.first = q.list[:0], 0
	case q.first > 64 && q.first > len(q.list)/2:
		q.list, q.first = q.list[:copy(q.list, q.list[q.first:])], 0
	}
}

// Host is the number of the end's host.
func (c *Conn) Host() int { return c.s.host.ID() }

// Peer is the other end.
func (c *Conn) Peer() *Conn { return c.peer }

// Core is the core of the host on which the end's work is done.
func (c *Conn) Core() int { return int(c.core) }

// Window is the congestion window in bytes.
func (c *Conn) Window() int { return c.cwnd }

// Send writes a message, behind those that were sent before. A message of no bytes
// is taken for one of one byte.
func (c *Conn) Send(size int, tag uint64) {
	size = max(size, 1)
	c.asked += uint64(size)
	m := bounded{Message{size, tag, c.n.k.Now()}, c.asked}
	c.toWrite.push(m)
	c.unacked.push(m)
	c.peer.incoming.push(m)
	c.write()
}

// write begins the system call for the next message, or the rest of one, if the
// buffer has room.
func (c *Conn) write() {
	m := c.toWrite.head()
	if c.writing || m == nil {
		return
	}
	room := c.n.cfg.SendBuffer - int(c.written-c.una)
	rest := int(m.end - c.written)
	size := min(rest, room)
	if size < rest && room < c.n.cfg.SendBuffer/3 { // as Linux wakes writers
		c.blocked = true
		return
	}
	k := c.n.cfg.Costs
	cost := k.SendCall + des.Time(size)*k.SendByte
	if c.blocked {
		cost += k.Wake
	}
	c.blocked, c.writing = false, true
	now := c.n.k.Now()
	c.n.k.At(c.s.cpu.Do(int(c.core), hostcpu.TCP, now, cost), c.n.wroteKind, c.id, int32(size))
}

// wrote is the end of a system call that wrote some bytes.
func (c *Conn) wrote(size int) {
	c.writing = false
	c.written += uint64(size)
	if m := c.toWrite.head(); c.written == m.end {
		c.toWrite.pop()
	}
	c.pump()
	c.write()
}

// fill goes on with a message that found no room.
func (c *Conn) fill() {
	if c.blocked {
		c.write()
	}
}
