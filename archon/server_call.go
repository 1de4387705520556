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
	flags    uint8         // of the request
	request  Buf           // the whole message
	response Buf           // the whole buffer; none: none yet
	length   int           // bytes of response to send
	reserved int           // bytes of it that count as waiting to be sent
	reply    Metadata      // for the response
	out      *Sender       // of a stream; nil: no stream
	held     int           // bytes of the request that count by MaxRequestBytes
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
func (call *ServerCall) Payload() []byte { return call.request.Payload() }

// Metadata is what the client sent along, in the received buffer too.
func (call *ServerCall) Metadata() Metadata { return call.request.Metadata() }

// AddReplyMetadata adds to what is sent along with the response, or the failure. Added
// before Alloc, it costs no copy of the response.
func (call *ServerCall) AddReplyMetadata(key, value string) error { return call.reply.Add(key, value) }

// OneWay tells whether nobody waits for an answer.
func (call *ServerCall) OneWay() bool { return call.flags&flagOneWay != 0 }

// Streams tells whether the call is answered with a stream.
func (call *ServerCall) Streams() bool { return call.flags&flagStream != 0 }

// Service is what the client asked for when it connected.
func (call *ServerCall) Service() string { return call.conn.sock.Service() }

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
	b, err := allocBuf(call.conn.sock, &call.reply, n)
	if err != nil {
		s.respSize.Add(-int64(n))
		return nil, err
	}
	call.response, call.length, call.reserved = b, len(b.raw), n
	return b.Payload(), nil
}

// answered tells whether the handler made the response itself.
func (call *ServerCall) answered() bool { return call.response.raw != nil || call.release != nil }

// encode makes the response of what e appends.
func (call *ServerCall) encode(e Encoder) error {
	room, err := call.Alloc(e.Size())
	if err != nil {
		return err
	}
	out, err := appendTo(room, e)
	if err != nil {
		return err
	}
	if isPrefix(out, room) {
		call.length = call.response.at() + len(out)
		return nil
	}
	if room, err = call.Alloc(len(out)); err == nil {
		copy(room, out)
	}
	return err
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
	call.parts, call.partsLen, call.release, call.reserved = parts, n, release, n
	if _, ok := call.conn.sock.(Gatherer); ok {
		return nil
	}
	err := call.flatten()
	if err != nil {
		s.respSize.Add(-int64(n))
		call.parts, call.partsLen, call.release, call.reserved = nil, 0, nil, 0
	}
	return err
}

// flatten copies the parts of a gathered response into one buffer.
func (call *ServerCall) flatten() error {
	b, err := allocBuf(call.conn.sock, &call.reply, call.partsLen)
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
	if call.response.raw != nil { // the header alone
		copy(b.raw[:HeaderSize], call.response.raw)
		call.conn.sock.Free(call.response.raw)
	}
	call.response, call.length = b, len(b.raw)
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
	if call.reserved != 0 {
		call.conn.server.respSize.Add(-int64(call.reserved))
		call.reserved = 0
	}
	if release := call.release; release != nil {
		call.parts, call.release, call.partsLen = nil, nil, 0
		release()
	}
	if call.response.raw != nil {
		call.conn.sock.Free(call.response.raw)
		call.response, call.length = Buf{}, 0
	}
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

// SetContext makes ctx, which derives from Context, what Context gives from here on:
// for interceptors that add values.
func (call *ServerCall) SetContext(ctx context.Context) {
	call.conn.mu.Lock()
	defer call.conn.mu.Unlock()
	call.ctx = ctx
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
	call.answer(err)
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

// answer ends the handler's part: the request is freed, and the answer posted.
func (call *ServerCall) answer(err error) {
	c := call.conn
	if call.listed {
		c.unlist(call)
	}
	if call.end != nil {
		call.end()
	}
	if call.OneWay() {
		if err != nil {
			c.server.stats.oneWayFailed.Add(1)
		}
		call.finish()
		return
	}
	h := header{kind: kindResponse, id: call.id}
	var message string
	if err != nil {
		var retryable bool
		h.code, message, retryable = status(err)
		message = message[:min(len(message), maxDetail, max(0, c.sock.MaxMessage()-HeaderSize-call.reply.wireSize()))]
		if retryable {
			h.flags = flagRetryable
		}
		call.dropResponse()
	}
	call.freeRequest()
	if err := call.fill(message); err != nil {
		c.abandon(call)
		return
	}
	h.meta = call.response.meta
	h.detail = uint32(len(message))
	h.payload = uint32(call.length-h.at()) - h.detail
	h.put(call.response.raw)
	c.post(call)
}

// fill makes the response's buffer, unless it is made, with the reply's metadata and
// message.
func (call *ServerCall) fill(message string) error {
	old := call.response
	if old.raw != nil && int(old.meta) == call.reply.wireSize() {
		return nil
	}
	var payload []byte
	if old.raw != nil {
		payload = old.raw[old.at():call.length]
	}
	b, err := allocBuf(call.conn.sock, &call.reply, len(payload)+len(message))
	if err != nil {
		return err
	}
	copy(b.Payload(), payload)
	copy(b.Payload()[len(payload):], message)
	if old.raw != nil {
		call.conn.sock.Free(old.raw)
	}
	call.response, call.length = b, len(b.raw)+call.partsLen
	return nil
}

// sent ends the call: the answer's buffer is ours again, or gone with an error.
func (call *ServerCall) sent(err error) {
	call.conn.pacing.unsent.Add(-int64(call.length))
	if err != nil && call.release == nil { // gathered memory is ours all the same
		call.response = Buf{}
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
	c := call.conn
	call.dropResponse()
	call.recycle()
	if c.open.Add(-1) == 0 && c.server.draining.Load() {
		c.server.lookAgain()
	}
}

// recycle frees what is left and puts the call into the pool.
func (call *ServerCall) recycle() {
	c := call.conn
	call.freeRequest()
	*call = ServerCall{fn: call.fn, reply: Metadata{call.reply.b[:0]}}
	c.server.calls.Put(call)
}

// freeRequest gives the request's buffer back, unless that is done.
func (call *ServerCall) freeRequest() {
	if call.held != 0 {
		call.conn.server.load.release(call.held)
		call.held = 0
	}
	if call.out != nil {
		call.conn.server.load.streams.Add(-1)
		call.out = nil
	}
	if call.request.raw != nil {
		call.conn.sock.Free(call.request.raw)
		call.request = Buf{}
	}
}
