package core

import "github.com/byteexpress/byteexpress/mr"

// Exposed memory: a node lets its peers read some of its memory whenever they like.
// Nobody at that node is asked, or hears of it.

// Fetch reads memory at addr that the peer exposed with a key, as much as b is long,
// at least a byte. It takes b and calls done as Send does; with nil, b has all of it. It
// keeps no order with messages. A key that is none, or none any more, ends the engine: the
// peer's device says so. ErrUnsupported if the queue pairs take no READs.
func (e *Engine) Fetch(s *Socket, addr uint64, key mr.RKey, b []byte, lkey mr.LKey, tag uint64, done func(error)) {
	m := e.ofBuffer(b, lkey, tag, done)
	switch {
	case s.state != sockOpen || !e.Up():
		e.endOutgoing(m, e.closed(s))
		return
	case !e.cfg.Get:
		e.endOutgoing(m, ErrUnsupported)
		return
	}
	m.sock, m.known, m.more = s, true, true
	s.sending++
	e.sending++
	m.state, m.addr, m.rkey = sendWriting, addr, key
	s.fetching.push(m)
	e.sched.add(reads, s)
}
