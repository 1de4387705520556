package channel

import (
	"context"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// Call is one call of Go. The caller owns it, and may use it again once done was
// called.
type Call struct {
	Method   archon.Method
	Request  archon.Encoder  // nil: the payload is empty. It is asked once for each attempt, on any goroutine, one after another, until done
	Metadata archon.Metadata // for the server
	Timeout  time.Duration   // for all attempts together; 0: for ever
	// Idempotent says that the call may be repeated though it may have run, beside
	// those of Config.Idempotent.
	Idempotent bool
	// Affinity sends calls of the same number to the same replica, while that can be
	// reached and is not overloaded; 0: to any.
	Affinity uint64

	Response archon.Response // set before done is called
	Err      error           // likewise; an *Error

	shard *shard
	op    *op // while the call runs; the shard's lock
	done  func(*Call)
	wake  chan struct{} // of Do
}

// Go starts a call; done(call) runs once when it is over, on the goroutine of a socket,
// a timer or Close, or before Go returns. done must not block, and may start the next
// call. Steady use allocates nothing.
func (ch *Channel) Go(call *Call, done func(*Call)) {
	s := ch.shards[ch.turn.Add(1)%uint32(len(ch.shards))]
	call.Response, call.Err, call.shard, call.done = archon.Response{}, nil, s, done
	s.mu.Lock()
	if ch.closed.Load() {
		s.mu.Unlock()
		call.Err = &Error{Service: ch.cfg.Service, Method: call.Method.String(), Err: errClosed}
		done(call)
		return
	}
	s.stats.Calls++
	o := s.newOp(call)
	now := ch.now()
	o.core.Affinity = call.Affinity
	o.core.Repeatable = call.Idempotent || ch.idempotent[call.Method]
	if call.Timeout != 0 {
		o.core.Deadline = max(now+call.Timeout, 1)
	}
	s.perform(o, o.core.Start(&s.shared, now))
}

// Cancel ends a call of Go with err, unless it is over, and tells the server. done has
// run, or runs on another goroutine, when Cancel returns.
func (ch *Channel) Cancel(call *Call, err error) {
	s := call.shard
	if s == nil {
		return
	}
	s.mu.Lock()
	o := call.op
	if o == nil || o.call != call || o.over {
		s.mu.Unlock()
		return
	}
	o.final = err
	s.perform(o, o.core.Abort())
}

// Options are what a call has beside what an Invocation says.
type Options struct {
	Idempotent bool   // see Call
	Affinity   uint64 // see Call
}

type optionsKey struct{}

// WithOptions gives a context whose calls by Do, and so by archon.Invoke, have the
// options.
func WithOptions(ctx context.Context, o Options) context.Context {
	return context.WithValue(ctx, optionsKey{}, o)
}

// Do makes a call and waits for its response, which the caller releases: it implements
// archon.Invoker. ctx's deadline and cancellation travel to the server. The error is
// an *Error. A one-way call goes to one replica, once: that it was sent is all that is
// known of it.
func (ch *Channel) Do(ctx context.Context, inv *archon.Invocation) (archon.Response, error) {
	call := ch.calls.Get().(*Call)
	defer ch.recycle(call)
	call.Method, call.Request, call.Metadata = inv.Method, inv.Request, inv.Metadata
	call.Idempotent, call.Affinity, call.Timeout = false, 0, 0
	if inv.OneWay {
		return archon.Response{}, ch.sendOneWay(ctx, inv)
	}
	if o, ok := ctx.Value(optionsKey{}).(Options); ok {
		call.Idempotent, call.Affinity = o.Idempotent, o.Affinity
	}
	if deadline, ok := ctx.Deadline(); ok {
		if call.Timeout = time.Until(deadline); call.Timeout <= 0 {
			return archon.Response{}, ch.failed(call, errDeadline)
		}
	}
	if err := ctx.Err(); err != nil {
		return archon.Response{}, ch.failed(call, contextError(err))
	}
	ch.Go(call, wakeCaller)
	select {
	case <-call.wake:
	case <-ctx.Done():
		ch.Cancel(call, contextError(ctx.Err()))
		<-call.wake
	}
	return call.Response, call.Err
}

func wakeCaller(call *Call) { call.wake <- struct{}{} }

func (ch *Channel) recycle(call *Call) {
	call.Request, call.Metadata, call.Response, call.Err = nil, archon.Metadata{}, archon.Response{}, nil
	ch.calls.Put(call)
}

func (ch *Channel) failed(call *Call, err error) error {
	return &Error{Service: ch.cfg.Service, Method: call.Method.String(), Err: err}
}

func contextError(err error) error {
	if err == context.DeadlineExceeded { //nolint:errorlint // what a context says
		return errDeadline
	}
	return &archon.Error{Code: archon.Canceled, Message: "given up by the caller", Cause: err}
}
