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

	id   CallID
	done func(*Call)
	wake chan struct{} // of Client.Call
}

func (call *Call) finish(resp Response, err error) {
	call.Response, call.Err = resp, err
	call.done(call)
}

// Response is a received message. The zero Response is none.
type Response struct {
	raw  []byte
	sock Socket
}

// Payload is what the handler wrote, in the received buffer itself. It must not be
// used after Release.
func (r *Response) Payload() []byte {
	if r.raw == nil {
		return nil
	}
	return r.raw[HeaderSize:]
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
	raw := call.Request.raw
	call.Request = Buf{}
	if raw == nil {
		return errNoBuffer
	}
	err := c.begin(call, raw, done)
	if err != nil {
		c.sock.Free(raw)
	}
	return err
}

// begin is Go with the request apart; with an error, raw stays the caller's.
func (c *Client) begin(call *Call, raw []byte, done func(*Call)) error {
	h := header{kind: kindRequest, payload: uint32(len(raw) - HeaderSize), method: call.Method.id, timeout: call.Timeout}
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
	h.put(raw)
	s := c.sends.Get().(*clientSend)
	s.raw, s.id = raw, h.id
	err := c.sock.Post(raw, s.fn)
	if err == nil {
		return nil
	}
	c.sends.Put(s)
	if c.take(h.id) == nil { // its done has run, or runs
		c.sock.Free(raw)
		return nil
	}
	return postError(err)
}

// list gives the call its id and makes it outstanding.
func (c *Client) list(call *Call, h *header, now, deadline time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	id, ok := c.calls.add(call, deadline)
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

func (c *Client) take(id CallID) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls.take(id)
}

// clientSend is a request on its way out. It is apart from the Call, since a
// response may arrive before the transport is done with the request's buffer.
type clientSend struct {
	client *Client
	raw    []byte
	id     CallID
	fn     func(error) // sent, bound once
}

func (s *clientSend) sent(err error) {
	c, raw, id := s.client, s.raw, s.id
	s.raw = nil
	c.sends.Put(s)
	if err == nil {
		c.sock.Free(raw)
		return
	}
	if call := c.take(id); call != nil {
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
	if err := c.beginWhenFree(ctx, call, request.raw); err != nil {
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

func (c *Client) beginWhenFree(ctx context.Context, call *Call, raw []byte) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if err := ctx.Err(); err != nil {
			return contextError(err)
		}
		call.Timeout = 0
		if deadline, ok := ctx.Deadline(); ok {
			if call.Timeout = time.Until(deadline); call.Timeout <= 0 {
				return errDeadline
			}
		}
		err := c.begin(call, raw, wakeCaller)
		if err != errMaxCalls && !errors.Is(err, ErrQueueFull) { // nil among others
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
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
	id := call.id
	mine := c.calls.has(id, call) && c.calls.take(id) != nil
	c.mu.Unlock()
	if mine {
		if CodeOf(err) != DeadlineExceeded {
			c.tellCanceled(id)
		}
		call.finish(Response{}, err)
	}
}

// tellCanceled says that nobody waits for the call. It is a hint: when it cannot be
// sent, the server finds out by the deadline.
func (c *Client) tellCanceled(id CallID) {
	raw, err := c.sock.Alloc(HeaderSize)
	if err != nil {
		return
	}
	h := header{kind: kindCancel, id: id}
	h.put(raw)
	s := c.sends.Get().(*clientSend)
	s.raw, s.id = raw, id
	if c.sock.Post(raw, s.fn) != nil {
		c.sends.Put(s)
		c.sock.Free(raw)
	}
}
