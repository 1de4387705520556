package archon

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

// serverConn is one connection of a server.
type serverConn struct {
	server *Server
	sock   Socket
	short  ShortPoster  // the same; nil: it does not copy
	open   atomic.Int64 // calls received and not yet fully answered
	pongs  atomic.Int64 // posted and not sent
	last   atomic.Bool  // the client, told to go away, has sent its last request
	pacing pacing

	mu      sync.Mutex
	closed  bool
	queued  []*ServerCall // by the client's slot: calls at the workers, for cancel
	backlog []*ServerCall // answers that the full send queue refused
	retry   *time.Timer   // sends the backlog when no answer's end does
	waiting atomic.Bool   // there is a backlog
}

// retryBacklog is how long refused answers wait when no other answer's completion
// makes room earlier.
const retryBacklog = time.Millisecond

// onMessage takes what the client sends. It runs on the socket's goroutine.
func (c *serverConn) onMessage(b []byte, err error) {
	if err != nil {
		c.gone()
		return
	}
	h, err := parseHeader(b)
	if err == nil && h.kind == kindRequest {
		c.request(&h, b)
		return
	}
	if err == nil {
		err = c.control(&h)
	}
	c.sock.Free(b)
	if err != nil {
		c.sock.Close()
	}
}

// control takes a message that is a header alone.
func (c *serverConn) control(h *header) error {
	switch h.kind {
	case kindCancel:
		c.cancel(h.id)
		return nil
	case kindWindow:
		return c.grant(h.id, int64(h.window))
	case kindPing:
		c.pong(h.id)
		return nil
	case kindGoAway:
		c.last.Store(true)
		c.server.lookAgain()
		return nil
	}
	return errors.Wrapf(ErrProtocol, "message of kind %d from a client", h.kind)
}

// request starts a call, or refuses it.
func (c *serverConn) request(h *header, b []byte) {
	call := c.server.calls.Get().(*ServerCall)
	call.conn, call.id, call.flags, call.request = c, h.id, h.flags, Buf{raw: b, meta: h.meta}
	call.method = c.server.methods.find(h.method)
	call.timeout = h.timeout
	refusal, ok := c.admit(call)
	switch {
	case !ok:
		call.recycle()
		c.sock.Close()
	case refusal != nil:
		call.answer(refusal)
	case call.method.inline:
		c.pace(call)
	case call.method.streams:
		c.startStream(call, int64(h.window))
	default:
		c.enqueue(call)
	}
}

// enqueue hands the call to a worker, or refuses it.
func (c *serverConn) enqueue(call *ServerCall) {
	s := c.server
	refusal := s.load.admit(call.timeout, len(s.queue))
	if refusal == nil {
		refusal = c.hold(call)
	}
	if refusal == nil {
		call.Deadline() // counts from now
		c.list(call)
		select {
		case s.queue <- call:
			return
		default:
			refusal = errQueue
		}
	}
	s.stats.overloaded.Add(1)
	call.answer(refusal)
}

// hold counts the call's request as kept.
func (c *serverConn) hold(call *ServerCall) error {
	n := len(call.request.raw)
	if !c.server.load.hold(n, c.server.cfg.MaxRequestBytes) {
		return errMemory
	}
	call.held = n
	return nil
}

// admit counts a call and decides whether it may run. ok is false, and the call not
// counted, when the client does not heed refusals.
func (c *serverConn) admit(call *ServerCall) (refusal error, ok bool) {
	limit := c.server.cfg.MaxCalls
	open := int(c.open.Add(1))
	switch {
	case open > 2*limit && !call.OneWay():
		c.open.Add(-1)
		return nil, false
	case c.server.draining.Load():
		c.server.stats.draining.Add(1)
		return errDraining, true
	case call.method == nil:
		return errNoMethod, true
	case open > limit || uint64(call.id.slot()) >= uint64(limit):
		c.server.stats.overloaded.Add(1)
		return errMaxCalls, true
	case call.method.streams != call.Streams():
		return errStreams, true
	}
	return nil, true
}

// list makes the call known to cancel and grant. The client may use a slot again as soon as
// it has given its call up; the old call, which nobody could end any more, ends then.
func (c *serverConn) list(call *ServerCall) {
	if call.OneWay() {
		return // has no slot
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := int(call.id.slot())
	for len(c.queued) <= slot {
		c.queued = append(c.queued, nil)
	}
	if old := c.queued[slot]; old != nil {
		old.cancel()
	}
	c.queued[slot] = call
	call.listed = true
}

// cancel ends the context of a call that the client gave up.
func (c *serverConn) cancel(id CallID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.find(id); call != nil {
		call.cancel()
	}
}

// find gives the listed call of that id, or nil. The caller holds mu.
func (c *serverConn) find(id CallID) *ServerCall {
	if slot := uint64(id.slot()); slot < uint64(len(c.queued)) {
		if call := c.queued[slot]; call != nil && call.id == id {
			return call
		}
	}
	return nil
}

// unlist makes the call unknown to cancel.
func (c *serverConn) unlist(call *ServerCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot := call.id.slot(); c.queued[slot] == call {
		c.queued[slot] = nil
	}
}

// gone ends the connection's calls: the last callback was received.
func (c *serverConn) gone() {
	c.mu.Lock()
	c.closed = true
	for _, call := range c.queued {
		if call != nil {
			call.cancel()
		}
	}
	backlog := c.backlog
	c.backlog = nil
	if c.retry != nil {
		c.retry.Stop()
	}
	c.mu.Unlock()
	for _, call := range backlog {
		call.discard()
	}
	for call := c.nextParked(); call != nil; call = c.nextParked() {
		call.discard()
	}
	c.server.detach(c)
}

// post sends a call's answer, or keeps it for later when the send queue is full;
// it tells whether there was room.
func (c *serverConn) post(call *ServerCall) bool {
	if call.release == nil && c.postShort(call.response.raw[:call.length]) {
		call.discard()
		return true
	}
	n := int64(call.length)
	c.pacing.unsent.Add(n)
	err := c.send(call)
	if err == nil {
		return true
	}
	c.pacing.unsent.Add(-n)
	if errors.Is(err, ErrQueueFull) && c.keep(call) {
		return false
	}
	c.abandon(call) // refused for good, so the buffer is ours
	return true
}

// postShort sends a copy of a message, if the socket takes that; raw stays the caller's.
func (c *serverConn) postShort(raw []byte) bool {
	return c.short != nil && c.short.PostShort(raw) == nil
}

func (c *serverConn) send(call *ServerCall) error {
	if call.release != nil {
		err := c.sock.(Gatherer).PostGather(call.response.raw, call.parts, call.fn)
		if !errors.Is(err, ErrNotGatherable) {
			return err
		}
		if err = call.flatten(); err != nil {
			return err
		}
	}
	return c.sock.Post(call.response.raw[:call.length], call.fn)
}

// abandon ends a call whose client cannot be told, and the connection with it, which
// the client sees.
func (c *serverConn) abandon(call *ServerCall) {
	call.discard()
	c.sock.Close()
}

// keep puts an answer into the backlog, unless the connection has ended.
func (c *serverConn) keep(call *ServerCall) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.backlog = append(c.backlog, call)
	c.waiting.Store(true)
	if c.retry == nil {
		c.retry = time.AfterFunc(retryBacklog, c.flush)
	} else {
		c.retry.Reset(retryBacklog)
	}
	return true
}

// flush posts what it can of the backlog. Answers have no order among them.
func (c *serverConn) flush() {
	for {
		c.mu.Lock()
		last := len(c.backlog) - 1
		if last < 0 {
			c.waiting.Store(false)
			c.mu.Unlock()
			return
		}
		call := c.backlog[last]
		c.backlog[last] = nil
		c.backlog = c.backlog[:last]
		c.mu.Unlock()
		if !c.post(call) {
			return
		}
	}
}
