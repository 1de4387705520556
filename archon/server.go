package archon

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

// Handler answers a call. It reads call.Payload, writes the response into the
// buffer of call.Alloc, if any, and returns nil; or it returns an error, best an
// [*Error], which travels by its code and message.
type Handler func(call *ServerCall) error

// ServerConfig sets a Server up. The zero value works. It is not changed after use.
type ServerConfig struct {
	// Workers run the handlers that are not inline; 0: 4 a CPU.
	Workers int
	// Queue bounds the calls that wait for a worker, over all connections; more are
	// refused. So are those that would wait for more than half of the time that their
	// deadline leaves, as far as the handlers before took. 0: 4096.
	Queue int
	// MaxRequestBytes bounds the requests of calls that wait for a worker or run on
	// one, and of streams, over all connections; more are refused. 0: 1 GiB.
	MaxRequestBytes int64
	// MaxStreams bounds the streams under way, each of which has a goroutine, over all
	// connections; more are refused. 0: 1024.
	MaxStreams int
	// MaxCalls bounds the calls of one connection that are not fully answered; more
	// are refused, and a peer that goes on regardless is disconnected. 0: twice
	// DefaultMaxCalls, since a call ends here a little later than at the client.
	MaxCalls int
	// MaxResponseBytes bounds the response buffers that wait for their peers, over
	// all connections. A handler gets no more memory then, and its call is refused.
	// 0: 1 GiB.
	MaxResponseBytes int64
	// MaxUnsent is how many bytes of responses of one connection may wait to be sent
	// before further inline handlers wait too. 0: 1 MiB.
	MaxUnsent int64
	// Interceptors stand around every handler, the first outermost.
	Interceptors []Interceptor
	// Incarnation is told to whoever pings, so that a server that was started anew at
	// the same address is recognised. 0: drawn at random.
	Incarnation uint64
	// OnPanic, if set, hears of handlers that panicked, with the stack. The call is
	// answered with Internal either way.
	OnPanic func(method string, value any, stack []byte)
}

// Server answers calls. Handlers are registered first; then any number of
// goroutines may Serve.
type Server struct {
	cfg      ServerConfig
	methods  methodTable
	ctx      context.Context // ends at Close
	cancel   context.CancelFunc
	queue    chan *ServerCall
	calls    sync.Pool    // *ServerCall
	sends    sync.Pool    // *serverSend
	respSize atomic.Int64 // bytes of responses and items not yet sent
	load     load
	stats    serverStats
	draining atomic.Bool
	idle     chan struct{} // Shutdown looks again
	workers  sync.WaitGroup
	attached sync.WaitGroup // one a connection, until its last callback

	mu        sync.Mutex
	started   bool
	closed    bool
	listeners map[Listener]struct{}
	conns     map[*serverConn]struct{}
}

// ErrServerClosed is wrapped by what a closed server is asked for.
var ErrServerClosed = errors.New("the server is closed")

// NewServer makes a server without methods.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Workers <= 0 {
		cfg.Workers = 4 * runtime.GOMAXPROCS(0)
	}
	if cfg.Queue <= 0 {
		cfg.Queue = 4096
	}
	if cfg.MaxCalls <= 0 {
		cfg.MaxCalls = 2 * DefaultMaxCalls
	}
	if cfg.MaxResponseBytes <= 0 {
		cfg.MaxResponseBytes = 1 << 30
	}
	if cfg.MaxUnsent <= 0 {
		cfg.MaxUnsent = 1 << 20
	}
	if cfg.MaxRequestBytes <= 0 {
		cfg.MaxRequestBytes = 1 << 30
	}
	if cfg.MaxStreams <= 0 {
		cfg.MaxStreams = 1024
	}
	if cfg.Incarnation == 0 {
		cfg.Incarnation = newIncarnation()
	}
	s := &Server{cfg: cfg, idle: make(chan struct{}, 1), listeners: map[Listener]struct{}{}, conns: map[*serverConn]struct{}{}}
	s.load.workers = int64(cfg.Workers)
	s.sends.New = func() any {
		n := &serverSend{}
		n.fn = n.sent
		return n
	}
	s.calls.New = func() any {
		call := &ServerCall{}
		call.fn = call.sent
		return call
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Workers is how many handlers run at once that are not inline.
func (s *Server) Workers() int { return s.cfg.Workers }

// Handle registers a handler that runs on a worker goroutine.
func (s *Server) Handle(m Method, h Handler) error {
	return s.register(&method{Method: m, handler: h})
}

// HandleInline registers a handler that runs on the goroutine that moves the
// socket's bytes: for work so short that handing it over would cost more. It must
// not block.
func (s *Server) HandleInline(m Method, h Handler) error {
	return s.register(&method{Method: m, handler: h, inline: true})
}

func (s *Server) register(m *method) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.started || s.closed:
		return errors.Errorf("method %s: register methods before the server serves", m.name)
	case m.handler == nil || m.name == "":
		return errors.Errorf("method %q: a name and a handler are needed", m.name)
	}
	m.handler = intercept(s.cfg.Interceptors, m.handler)
	return s.methods.add(m)
}

// Serve accepts connections of l until ctx ends, l fails or the server is closed;
// in the last case it gives nil. The caller closes l, unless Close did.
func (s *Server) Serve(ctx context.Context, l Listener) error {
	if err := s.begin(l); err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	for {
		sock, err := l.Accept(ctx)
		if err != nil {
			if (s.ctx.Err() != nil || s.draining.Load()) && errors.Is(err, net.ErrClosed) {
				return nil
			}
			return errors.WithMessagef(err, "accept at %v", l.Addr())
		}
		s.ServeSocket(sock)
	}
}

// ServeSocket answers the calls of one more connection, which is the server's from
// here on. It returns at once.
func (s *Server) ServeSocket(sock Socket) {
	c := &serverConn{server: s, sock: sock}
	c.short, _ = sock.(ShortPoster)
	if s.begin(nil) != nil {
		sock.Close()
		return
	}
	s.mu.Lock()
	if s.closed || s.draining.Load() {
		s.mu.Unlock()
		sock.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.attached.Add(1)
	s.mu.Unlock()
	sock.OnMessage(c.onMessage)
}

// begin notes a listener and starts the workers the first time.
func (s *Server) begin(l Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.draining.Load() {
		return ErrServerClosed
	}
	if l != nil {
		s.listeners[l] = struct{}{}
	}
	if s.started {
		return nil
	}
	s.started = true
	if !s.methods.needWorkers {
		return nil
	}
	s.queue = make(chan *ServerCall, s.cfg.Queue)
	for range s.cfg.Workers {
		s.workers.Go(s.work)
	}
	return nil
}

func (s *Server) work() {
	for call := range s.queue {
		began := time.Now()
		call.run()
		s.load.took(time.Since(began))
	}
}

// Close ends the listeners and connections at once, cancels the contexts of
// running handlers and waits for them. It must not be called from a handler.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.cancel()
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.sock.Close()
	}
	s.mu.Unlock()
	s.attached.Wait()
	if s.queue != nil {
		close(s.queue)
	}
	s.workers.Wait()
	return nil
}

func (s *Server) detach(c *serverConn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.lookAgain()
	s.attached.Done()
}
