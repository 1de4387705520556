package archon

import "sync/atomic"

// Inline handlers answer at once, so a client with many calls outstanding, or one that
// does not read, would have all its responses in memory before the first is on its way.
// So a connection with enough unsent responses parks further calls, which are small,
// and runs them as responses leave.

// maxParked bounds the bytes of a connection's parked requests.
const maxParked = 16 << 20

// pacing is a connection's unsent responses and parked calls.
type pacing struct {
	unsent atomic.Int64 // bytes of responses posted and not sent
	parked atomic.Int64 // calls that wait

	// Under the connection's mu:
	first, last *ServerCall // of the parked calls, in order
	bytes       int         // of their requests
}

// crowded tells whether calls should wait.
func (c *serverConn) crowded() bool {
	return c.pacing.unsent.Load() >= c.server.cfg.MaxUnsent
}

// pace runs an inline call now or later, behind those that wait already. When no more
// may wait, the first of them runs in its place.
func (c *serverConn) pace(call *ServerCall) {
	if !c.crowded() && c.pacing.parked.Load() == 0 {
		call.run()
		return
	}
	for !c.park(call) {
		first := c.nextParked()
		if first == nil {
			call.run()
			return
		}
		first.run()
	}
	if !c.crowded() { // what was unsent may have left before the call was parked
		c.unpark()
	}
}

// park puts the call in line, unless the line is too long.
func (c *serverConn) park(call *ServerCall) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.pacing
	if c.closed || p.bytes+len(call.request.raw) > maxParked {
		return false
	}
	call.Deadline() // counts from now
	if p.last == nil {
		p.first = call
	} else {
		p.last.next = call
	}
	p.last = call
	p.bytes += len(call.request.raw)
	p.parked.Add(1)
	return true
}

// unpark runs parked calls while there is room for their responses.
func (c *serverConn) unpark() {
	for !c.crowded() {
		call := c.nextParked()
		if call == nil {
			return
		}
		call.run()
	}
}

func (c *serverConn) nextParked() *ServerCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.pacing
	call := p.first
	if call == nil {
		return nil
	}
	p.first, call.next = call.next, nil
	if p.first == nil {
		p.last = nil
	}
	p.bytes -= len(call.request.raw)
	p.parked.Add(-1)
	return call
}
