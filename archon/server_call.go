package archon

import (
	"context"
	"runtime/debug"
	"time"
)

// ServerCall is a call as its handler sees it. It must not be used after the
// handler has returned.
type ServerCall struct {
	conn     *serverConn
	method   *method
	id       CallID
	timeout  time.Duration // as received; 0: none
	deadline time.Time     // set when the call is queued
	request  []byte        // the whole message
	response []byte        // the whole buffer, header first; nil: none yet
	length   int           // bytes of response to send
	payload  bool          // response came from Alloc
	parts    [][]byte      // of a gathered response; nil: none
	partsLen int           // bytes
	release  func()        // gives parts back
	listed   bool          // conn.queued may refer to it
	fn       func(error)   // sent, bound once
	next     *ServerCall   // in the line of parked calls

	ctx      context.Context // made when asked for; under conn.mu, as the next two
	end      context.CancelFunc
	canceled bool
}

// Payload is the request, in the received buffer itself. It must not be used after
// the handler has returned.
func (call *ServerCall) Payload() []byte { return call.request[HeaderSize:] }

// Method is what was called.
func (call *ServerCall) Method() Method { return call.method.Method }

// Alloc gives the response's payload: n bytes with any contents, in memory that the
// transport sends as it is. A second Alloc replaces the first. Without one, the
// response is empty.
func (call *ServerCall) Alloc(n int) ([]byte, error) {
	call.dropResponse()
	s := call.conn.server
	if err := s.reserve(n); err != nil {
		return nil, err
	}
	b, err := allocBuf(call.conn.sock, n)
	if err != nil {
		s.respSize.Add(-int64(n))
		return nil, err
	}
	call.response, call.length, call.payload = b.raw, len(b.raw), true
	return b.Payload(), nil
}

// Gather makes the parts, one after another, the response's payload, in place of
// Alloc: they are sent from where they lie if the transport can do that, else
// copied. Until release is called, once, from any goroutine, the memory must hold
// still, and parts too. After an error release is not called.
func (call *ServerCall) Gather(parts [][]byte, release func()) error {
	n := 0
	for _, b := range parts {
		n += len(b)
	}
	if n > call.conn.sock.MaxMessage()-HeaderSize {
		return Errorf(InvalidArgument, "payload of %d bytes, at most %d", n, call.conn.sock.MaxMessage()-HeaderSize)
	}
	call.dropResponse()
	s := call.conn.server
	if err := s.reserve(n); err != nil {
		return err
	}
	call.parts, call.partsLen, call.release = parts, n, release
	if _, ok := call.conn.sock.(Gatherer); ok {
		return nil
	}
	err := call.flatten()
	if err != nil {
		s.respSize.Add(-int64(n))
		call.parts, call.partsLen, call.release = nil, 0, nil
	}
	return err
}

// flatten copies the parts of a gathered response into one buffer.
func (call *ServerCall) flatten() error {
	b, err := allocBuf(call.conn.sock, call.partsLen)
	if err != nil {
		return err
	}
	at := b.Payload()
	for _, p := range call.parts {
		at = at[copy(at, p):]
	}
	release := call.release
	call.parts, call.release, call.partsLen = nil, nil, 0
	release()
	if call.response != nil { // the header alone
		copy(b.raw, call.response)
		call.conn.sock.Free(call.response)
	}
	call.response, call.length, call.payload = b.raw, len(b.raw), true
	return nil
}

// reserve counts n bytes of a response that will wait to be sent, or refuses them.
func (s *Server) reserve(n int) error {
	used := s.respSize.Add(int64(n))
	if used <= s.cfg.MaxResponseBytes {
		return nil
	}
	s.respSize.Add(-int64(n))
	return Errorf(ResourceExhausted, "response of %d bytes, %d bytes wait to be sent and at most %d may: retry later",
		n, used-int64(n), s.cfg.MaxResponseBytes)
}

func (call *ServerCall) dropResponse() {
	if call.release != nil {
		call.conn.server.respSize.Add(-int64(call.partsLen))
		release := call.release
		call.parts, call.release, call.partsLen = nil, nil, 0
		release()
	}
	if call.response == nil {
		return
	}
	if call.payload {
		call.conn.server.respSize.Add(int64(HeaderSize - len(call.response)))
	}
	call.conn.sock.Free(call.response)
	call.response, call.length, call.payload = nil, 0, false
}

// Deadline is when the client stops waiting; ok is false when it never does.
func (call *ServerCall) Deadline() (deadline time.Time, ok bool) {
	if call.timeout == 0 {
		return time.Time{}, false
	}
	if call.deadline.IsZero() {
		call.deadline = time.Now().Add(call.timeout)
	}
	return call.deadline, true
}

// Context ends at the deadline, when the client gives the call up, when the
// connection or the server closes, and when the handler returns. It costs
// allocations, so short handlers do without.
func (call *ServerCall) Context() context.Context {
	deadline, ok := call.Deadline()
	call.conn.mu.Lock()
	defer call.conn.mu.Unlock()
	if call.ctx == nil {
		if ok {
			call.ctx, call.end = context.WithDeadline(call.conn.server.ctx, deadline)
		} else {
			call.ctx, call.end = context.WithCancel(call.conn.server.ctx)
		}
		if call.canceled {
			call.end()
		}
	}
	return call.ctx
}

// cancel ends the context. The caller holds conn.mu.
func (call *ServerCall) cancel() {
	call.canceled = true
	if call.end != nil {
		call.end()
	}
}

// run runs the handler and answers. It is called on a worker, or inline.
func (call *ServerCall) run() {
	var err error
	if !call.deadline.IsZero() && !time.Now().Before(call.deadline) {
		err = errExpired
	} else {
		err = call.handle()
	}
	call.reply(err)
}

// handle runs the handler; its panic becomes an error.
func (call *ServerCall) handle() (err error) {
	defer func() {
		if v := recover(); v != nil {
			if f := call.conn.server.cfg.OnPanic; f != nil {
				f(call.method.name, v, debug.Stack())
			}
			err = Errorf(Internal, "handler of %s panicked: %v", call.method.name, v)
		}
	}()
	return call.method.handler(call)
}

// reply ends the handler's part: the request is freed, and the answer posted.
func (call *ServerCall) reply(err error) {
	c := call.conn
	if call.listed {
		c.unlist(call)
	}
	if call.end != nil {
		call.end()
	}
	h := header{kind: kindResponse, id: call.id}
	var message string
	if err != nil {
		var retryable bool
		h.code, message, retryable = status(err)
		message = message[:min(len(message), maxDetail, max(0, c.sock.MaxMessage()-HeaderSize))]
		if retryable {
			h.flags = flagRetryable
		}
		call.dropResponse()
	}
	c.sock.Free(call.request)
	call.request = nil
	if call.response == nil {
		b, err := allocBuf(c.sock, len(message))
		if err != nil {
			c.abandon(call)
			return
		}
		call.response, call.length = b.raw, len(b.raw)+call.partsLen
		copy(b.Payload(), message)
	}
	h.detail = uint32(len(message))
	h.payload = uint32(call.length-HeaderSize) - h.detail
	h.put(call.response)
	c.post(call)
}

// sent ends the call: the answer's buffer is ours again, or gone with an error.
func (call *ServerCall) sent(err error) {
	call.conn.pacing.unsent.Add(-int64(call.length))
	if err != nil && call.release == nil { // gathered memory is ours all the same
		if call.payload {
			call.conn.server.respSize.Add(int64(HeaderSize - len(call.response)))
		}
		call.response = nil
	}
	call.finish()
}

// finish ends the call, which may make room for others.
func (call *ServerCall) finish() {
	c := call.conn
	call.discard()
	if c.waiting.Load() {
		c.flush()
	}
	if c.pacing.parked.Load() > 0 {
		c.unpark()
	}
}

// discard ends the call alone.
func (call *ServerCall) discard() {
	call.dropResponse()
	call.conn.open.Add(-1)
	call.recycle()
}

// recycle frees what is left and puts the call into the pool.
func (call *ServerCall) recycle() {
	c := call.conn
	if call.request != nil {
		c.sock.Free(call.request)
	}
	*call = ServerCall{fn: call.fn}
	c.server.calls.Put(call)
}
