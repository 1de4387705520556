package archon

import "context"

// Interceptor stands around a server's handlers: it may refuse a call, change what
// the handler sees, or look at what it answers. It calls next at most once, on the
// same goroutine. Around an inline handler it must not block.
type Interceptor func(call *ServerCall, next Handler) error

// intercept puts interceptors around a handler, the first outermost.
func intercept(around []Interceptor, h Handler) Handler {
	for i := len(around) - 1; i >= 0; i-- {
		outer, inner := around[i], h
		h = func(call *ServerCall) error { return outer(call, inner) }
	}
	return h
}

// ClientInterceptor stands around a client's calls that wait for a response, and
// around one-way ones. It may change inv, answer by itself, or call next any number
// of times, one at a time.
type ClientInterceptor func(ctx context.Context, inv *Invocation, next Invoker) (Response, error)

// StreamInterceptor stands around the opening of streams, likewise.
type StreamInterceptor func(ctx context.Context, inv *Invocation, next Opener) (*Stream, error)

type interceptedInvoker struct {
	around ClientInterceptor
	next   Invoker
}

func (i *interceptedInvoker) Do(ctx context.Context, inv *Invocation) (Response, error) {
	return i.around(ctx, inv, i.next)
}

func chainInvoker(around []ClientInterceptor, last Invoker) Invoker {
	for i := len(around) - 1; i >= 0; i-- {
		last = &interceptedInvoker{around[i], last}
	}
	return last
}

type interceptedOpener struct {
	around StreamInterceptor
	next   Opener
}

func (i *interceptedOpener) Open(ctx context.Context, inv *Invocation) (*Stream, error) {
	return i.around(ctx, inv, i.next)
}

func chainOpener(around []StreamInterceptor, last Opener) Opener {
	for i := len(around) - 1; i >= 0; i-- {
		last = &interceptedOpener{around[i], last}
	}
	return last
}
