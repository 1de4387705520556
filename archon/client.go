package archon

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxCalls is how many calls a connection may have outstanding when the
// configuration does not say.
const DefaultMaxCalls = 16384

// ClientConfig sets a Client up. The zero value works. It is not changed after use.
type ClientConfig struct {
	// MaxCalls bounds the calls outstanding, streams among them; 0: DefaultMaxCalls,
	// which is what a server takes by default.
	MaxCalls int
	// Interceptors stand around the calls of Do, the first outermost. Call and Go,
	// the plain forms, are beneath them.
	Interceptors []ClientInterceptor
	// StreamInterceptors likewise around Open.
	StreamInterceptors []StreamInterceptor
}

// Client calls the methods of the server at the other end of its socket. All
// methods may be called from any goroutine.
type Client struct {
	sock     Socket
	short    ShortPoster   // the same; nil: it does not copy
	start    time.Time     // deadlines count from here
	done     chan struct{} // closed after the last callback
	draining chan struct{} // closed when the server takes no new calls
	sends    sync.Pool     // *clientSend
	waits    sync.Pool     // *Call of Client.Call
	do       Invoker       // the interceptors, and doPlain behind them
	open     Opener

	received atomic.Uint64 // messages
	sent     atomic.Uint64 // messages but pings
	progress progress      // of the socket; nil: it does not count

	mu    sync.Mutex
	calls callTable
	pings callTable
	err   error // why there are no more calls
	away  error // why there are no new ones
	timer *time.Timer
	armed time.Duration // when the timer fires; 0: it is not running
}

// NewClient runs calls over sock, which is the client's from here on.
func NewClient(sock Socket, cfg ClientConfig) *Client {
	if cfg.MaxCalls <= 0 {
		cfg.MaxCalls = DefaultMaxCalls
	}
	c := &Client{sock: sock, start: time.Now(), done: make(chan struct{}), draining: make(chan struct{})}
	c.short, _ = sock.(ShortPoster)
	c.calls.limit, c.pings.limit = cfg.MaxCalls, maxPings
	c.do, c.open = chainInvoker(cfg.Interceptors, plainInvoker{c}), chainOpener(cfg.StreamInterceptors, plainInvoker{c})
	c.sends.New = func() any {
		s := &clientSend{client: c}
		s.fn = s.sent
		return s
	}
	c.waits.New = func() any { return &Call{wake: make(chan struct{}, 1)} }
	c.progress, _ = sock.(progress)
	sock.OnMessage(c.onMessage)
	return c
}

// Dial connects to a server and gives a client on the connection. Its error is an
// *Error: Unavailable with the transport's error as the cause, or what ctx says.
func Dial(ctx context.Context, t Transport, addr, service string, cfg ClientConfig) (*Client, error) {
	sock, err := t.Dial(ctx, addr, service)
	if err != nil {
		code := CodeOf(err)
		if code == Unknown {
			code = Unavailable
		}
		return nil, &Error{Code: code, Message: fmt.Sprintf("dial service %q at %s", service, addr), Cause: err, Retryable: true}
	}
	return NewClient(sock, cfg), nil
}

// Alloc gives a buffer for a request whose payload has n bytes. It goes to Call or
// Go, or back with Free.
func (c *Client) Alloc(n int) (Buf, error) { return allocBuf(c.sock, nil, n) }

// AllocWith is Alloc with metadata for the request, which is copied.
func (c *Client) AllocWith(md Metadata, n int) (Buf, error) { return allocBuf(c.sock, &md, n) }

// Free gives back a request buffer that is not sent after all.
func (c *Client) Free(b Buf) {
	if b.raw != nil {
		c.sock.Free(b.raw)
	}
}

// Err is why the client makes no more calls; nil while it does.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Done is closed when the connection has ended and its last callback has run.
func (c *Client) Done() <-chan struct{} { return c.done }

// Draining is closed when the server has said that it takes no new calls on this
// connection. They fail with a retryable Unavailable from then on; those under way
// end as usual.
func (c *Client) Draining() <-chan struct{} { return c.draining }

// Received moves on whenever something comes from the server, also part of a message
// where the transport sees that: whoever watches the connection need not ask after it
// meanwhile.
func (c *Client) Received() uint64 {
	n := c.received.Load()
	if c.progress != nil {
		n += c.progress.Arrived()
	}
	return n
}

// Sent moves on whenever something leaves, likewise, pings aside, and short messages
// where the transport copies them. A ping that has not left yet (Ping.Left) waits behind
// it.
func (c *Client) Sent() uint64 {
	n := c.sent.Load()
	if c.progress != nil {
		n += c.progress.Departed()
	}
	return n
}

// progress is a Socket that counts the bytes that have come and gone.
type progress interface {
	Arrived() uint64
	Departed() uint64
}

// Outstanding is how many calls are under way, streams among them.
func (c *Client) Outstanding() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls.live
}

// Close ends the connection. Outstanding calls end with Unavailable; their done
// functions run before Close returns. It may be called from a callback and does
// not wait for the socket's goroutines; Done tells.
func (c *Client) Close() error {
	err := c.sock.Close()
	c.fail(errClosed) // not retryable for those outstanding: the server may have run them
	return err
}

// fail ends all calls, now and later, with err. The first error stays.
func (c *Client) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	calls := append(c.calls.takeAll(), c.pings.takeAll()...)
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	for _, call := range calls {
		call.finish(Response{}, err)
	}
}

// arm makes the timer fire at a deadline, unless it fires earlier anyway. The
// caller holds mu.
func (c *Client) arm(now, deadline time.Duration) {
	if c.armed != 0 && c.armed <= deadline || c.err != nil {
		return
	}
	c.armed = deadline
	if c.timer == nil {
		c.timer = time.AfterFunc(deadline-now, c.expire)
		return
	}
	c.timer.Reset(deadline - now)
}

// expire ends the calls whose deadline has passed. It runs on a timer's goroutine.
func (c *Client) expire() {
	for {
		c.mu.Lock()
		now := time.Since(c.start)
		call := c.calls.takeExpired(now)
		if call == nil {
			call = c.pings.takeExpired(now)
		}
		if call == nil {
			c.armed = 0
			for _, t := range [...]*callTable{&c.calls, &c.pings} {
				if next, ok := t.next(); ok {
					c.arm(now, next)
				}
			}
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		call.finish(Response{}, errDeadline)
	}
}
