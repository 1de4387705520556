package core

import "github.com/byteexpress/byteexpress/be/internal/wire"

// maxControls bounds the control messages that wait for credits: a peer that
// asks without end and grants nothing is cut off.
const maxControls = 1 << 18

// control is one control message that waits to be sent.
type control struct {
	typ    wire.Type
	flags  uint8
	id     uint32 // socket
	seq    uint32
	reason wire.Reason
	sock   *Socket // SOCKET_CREDIT: the count is taken when it is sent
	a, b   uint64
	text   string
}

// controlQueue is a first-in first-out queue in a ring that grows. How many are in it is
// Engine.controlling.
type controlQueue struct {
	items []control
	head  int
}

func (q *controlQueue) push(c control, n int) {
	if n == len(q.items) {
		items := make([]control, max(2*n, 8))
		for i := range n {
			items[i] = q.items[(q.head+i)%n]
		}
		q.items, q.head = items, 0
	}
	q.items[(q.head+n)&(len(q.items)-1)] = c
}

func (q *controlQueue) pop() {
	q.items[q.head] = control{}
	q.head = (q.head + 1) & (len(q.items) - 1)
}

// control queues a control message. They are sent in order, before any payload.
func (e *Engine) control(c control) {
	if e.state == engineUp {
		e.controls.push(c, int(e.controlling))
		e.controlling++
	}
}

// sendControl prepares the oldest control message. The chain has a slot and
// there is a credit.
func (e *Engine) sendControl() {
	c := &e.controls.items[e.controls.head]
	b := e.chain.header()
	body := b[wire.HeaderLen:]
	n := 0
	switch c.typ {
	case wire.Open:
		n = wire.PutOpen(body, uint32(c.a), c.text)
	case wire.Refuse:
		n = wire.PutRefuse(body, c.reason, c.text)
	case wire.CTS:
		g := wire.Grant{Addr: c.a, Transfer: uint32(c.b >> 32), RKey: uint32(c.b)}
		n = g.Put(body)
	case wire.Reject, wire.Close, wire.Closed:
		n = wire.PutU32(body, uint32(c.reason))
	case wire.Ping, wire.Pong:
		n = wire.PutU64(body, c.a)
	case wire.GoAway:
		n = wire.PutPair(body, c.id, uint32(c.reason))
	case wire.Fin:
		n = wire.PutPair(body, 0, uint32(c.reason))
	case wire.Return:
		k := e.credits.GiveBack(int(c.seq))
		if k == 0 {
			e.popControl()
			return
		}
		c.seq = uint32(k)
	case wire.SocketCredit:
		c.sock.creditQueued = false
		c.sock.takenTold = c.sock.taken
		c.seq = c.sock.taken
	}
	e.sendHeader(c.typ, c.flags, c.id, c.seq, n, nil)
	e.popControl()
}

func (e *Engine) popControl() {
	e.controls.pop()
	if e.controlling--; e.controlling == 0 {
		e.controls.head = 0 // the next one needs no line that is in no cache
	}
}

// sendHeader prepares a SEND: the header, n bytes of body that lie behind it
// already, and all of a message, if there is one.
func (e *Engine) sendHeader(t wire.Type, flags uint8, id, seq uint32, n int, m *outgoing) {
	wire.PutHeader(e.chain.header()[:], t, flags, uint32(e.credits.Tell()), id, seq)
	e.chain.send(wire.HeaderLen+n, m)
	e.credits.Consume()
	if m == nil {
		e.stats.Sends++
	}
}
