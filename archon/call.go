package archon

import (
	"context"
	"time"

	"github.com/pkg/errors"
)

// Call is one call of Go. The caller owns it, and may use it again once done was
// called.
type Call struct {
	Method  Method
	Request Buf           // from Client.Alloc; Go takes it whatever happens
	Timeout time.Duration // how long to wait for the response; 0: for ever

	Response Response // set before done is called
	Err      error    // likewise; an *Error

	id     CallID
	table  *callTable // of its client; nil: it was never begun
	done   func(*Call)
	wake   chan struct{} // of Client.Call
	stream *Stream       // what items go to; nil: there are none
	ping   *Ping         // what a pong goes to; nil: a request
}

func (call *Call) finish(resp Response, err error) {
	call.Response, call.Err = resp, err
	call.done(call)
}

// Response is a received message. The zero Response is none.
type Response struct {
	raw  []byte
	sock Socket
	meta uint16 // bytes of metadata
}

// Payload is what the handler wrote, in the received buffer itself. It must not be
// used after Release.
func (r *Response) Payload() []byte {
	if r.raw == nil {
		return nil
	}
	return r.raw[HeaderSize+int(r.meta):]
}

// Metadata is what the server sent along, in the received buffer too.
func (r *Response) Metadata() Metadata {
	if r.raw == nil || r.meta == 0 {
		return Metadata{}
	}
	return Metadata{r.raw[HeaderSize : HeaderSize+int(r.meta)]}
}

// Release gives the buffer back, from any goroutine. A second Release does nothing.
func (r *Response) Release() {
	if r.raw != nil {
		r.sock.Free(r.raw)
		r.raw = nil
	}
}

// Go starts a call; done(call) runs once when it is over: on the socket's
// goroutine, on a timer's when the deadline passes, on the closer's in Close. done
// must not block, and may start the next call. When Go gives an error, the call
// was not started and done does not run. Steady use allocates nothing.
func (c *Client) Go(call *Call, done func(*Call)) error {
	b := call.Request
	call.Request = Buf{}
	if b.raw == nil {
		return errNoBuffer
	}
	err := c.begin(call, b, done)
	if err != nil {
		c.sock.Free(b.raw)
	}
	return err
}

// begin is Go with the request apart; with an error, b stays the caller's.
func (c *Client) begin(call *Call, b Buf, done func(*Call)) error {
	h := header{kind: kindRequest, payload: uint32(len(b.raw) - b.at()), meta: b.meta, method: call.Method.id, timeout: call.Timeout}
	call.table = &c.calls
	switch {
	case call.ping != nil:
		h = header{kind: kindPing}
		call.table = &c.pings
	case call.stream != nil:
		h.flags, h.window = flagStream, uint32(call.stream.limit)
	}
	table := call.table
	call.Response, call.Err, call.done = Response{}, nil, done
	var now, deadline time.Duration
	if call.Timeout != 0 {
		if call.Timeout < 0 {
			return errDeadline
		}
		now = time.Since(c.start)
		deadline = now + call.Timeout
	}
	if err := c.list(call, &h, now, deadline); err != nil {
		return err
	}
	// The call may be over at any moment from here on: it is not touched any more.
	h.put(b.raw)
	err := c.post(b.raw, table, h.id)
	if err == nil {
		return nil
	}
	if c.take(table, h.id) == nil { // its done has run, or runs
		c.sock.Free(b.raw)
		return nil
	}
	return postError(err)
}

// post sends a message of the call that id names in table, if table is not nil.
// With an error, raw stays the caller's.
func (c *Client) post(raw []byte, table *callTable, id CallID) error {
	if c.short != nil && table != &c.pings && c.short.PostShort(raw) == nil { // which does not tell when a ping leaves
		c.sock.Free(raw)
		return nil
	}
	s := c.sends.Get().(*clientSend)
	s.raw, s.table, s.id = raw, table, id
	err := c.sock.Post(raw, s.fn)
	if err != nil {
		c.sends.Put(s)
	}
	return err
}

// list gives the call its id and makes it outstanding.
func (c *Client) list(call *Call, h *header, now, deadline time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.away != nil && call.ping == nil {
		return c.away
	}
	id, ok := call.table.add(call, deadline)
	if !ok {
		return errMaxCalls
	}
	if deadline != 0 {
		c.arm(now, deadline)
	}
	call.id, h.id = id, id
	return nil
}

func postError(err error) *Error {
	if errors.Is(err, ErrQueueFull) {
		return &Error{Code: ResourceExhausted, Message: "send", Cause: err, Retryable: true}
	}
	return &Error{Code: Unavailable, Message: "send", Cause: err, Retryable: true}
}

func (c *Client) take(table *callTable, id CallID) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return table.take(id)
}

// clientSend is a message on its way out. It is apart from the Call, since a
// response may arrive before the transport is done with the request's buffer.
type clientSend struct {
	client *Client
	raw    []byte
	table  *callTable // of the call that ends if the message is lost; nil: none does
	id     CallID
	fn     func(error) // sent, bound once
}

func (s *clientSend) sent(err error) {
	c, raw, table, id := s.client, s.raw, s.table, s.id
	s.raw = nil
	c.sends.Put(s)
	if err == nil {
		c.sock.Free(raw)
		if table == &c.pings {
			c.pingLeft(id)
		} else {
			c.sent.Add(1)
		}
		return
	}
	if table == nil {
		return
	}
	if call := c.take(table, id); call != nil {
		call.finish(Response{}, &Error{Code: Unavailable, Message: "send", Cause: err})
	}
}

func wakeCaller(call *Call) { call.wake <- struct{}{} }

// Call runs one call and waits for its response, which the caller releases. ctx's
// deadline travels to the server, and its cancellation too. When the connection has
// all its calls outstanding, or its send queue is full, Call waits. The request
// buffer is gone whatever happens. It must not be used in a callback.
func (c *Client) Call(ctx context.Context, m Method, request Buf) (Response, error) {
	if request.raw == nil {
		return Response{}, errNoBuffer
	}
	call := c.waits.Get().(*Call)
	defer c.waits.Put(call)
	call.Method = m
	if err := c.beginWhenFree(ctx, call, request, wakeCaller); err != nil {
		c.sock.Free(request.raw)
		return Response{}, err
	}
	select {
	case <-call.wake:
	case <-ctx.Done():
		c.Cancel(call, contextError(ctx.Err()))
		<-call.wake
	}
	resp, err := call.Response, call.Err
	call.Response, call.Err = Response{}, nil
	return resp, err
}

// Calls that find the connection full look again after a pause that grows from
// minPause to maxPause.
const (
	minPause = 50 * time.Microsecond
	maxPause = time.Millisecond
)

// beginWhenFree is begin with the time that ctx leaves, and waits while the
// connection is full.
func (c *Client) beginWhenFree(ctx context.Context, call *Call, b Buf, done func(*Call)) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		var err error
		if call.Timeout, err = timeLeft(ctx); err != nil {
			return err
		}
		err = c.begin(call, b, done)
		if err != errMaxCalls && !errors.Is(err, ErrQueueFull) { // nil among others
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// timeLeft gives the time until ctx's deadline, 0 if it has none, or why ctx has ended.
func timeLeft(ctx context.Context) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, contextError(err)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0, nil
	}
	left := time.Until(deadline)
	if left <= 0 {
		return 0, errDeadline
	}
	return left, nil
}

func contextError(err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errDeadline
	}
	return &Error{Code: Canceled, Message: "given up by the caller", Cause: err}
}

// Cancel ends a call of Go with err, unless it is over, and tells the server, which
// knows of passed deadlines by itself. done has run, or runs on another goroutine,
// when Cancel returns.
func (c *Client) Cancel(call *Call, err error) {
	c.mu.Lock()
	id, table := call.id, call.table
	mine := table != nil && table.has(id, call) && table.take(id) != nil
	c.mu.Unlock()
	if mine {
		if CodeOf(err) != DeadlineExceeded && call.ping == nil {
			c.tellCanceled(id)
		}
		call.finish(Response{}, err)
	}
}

// tellCanceled says that nobody waits for the call. It is a hint: when it cannot be
// sent, the server finds out by the deadline.
func (c *Client) tellCanceled(id CallID) { c.tell(header{kind: kindCancel, id: id}) }

// tell sends a message that is a header alone, and tells whether it could be posted.
func (c *Client) tell(h header) bool {
	raw, err := c.sock.Alloc(HeaderSize)
	if err != nil {
		return false
	}
	h.put(raw)
	if c.post(raw, nil, h.id) != nil {
		c.sock.Free(raw)
		return false
	}
	return true
}
