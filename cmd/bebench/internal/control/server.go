package control

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// Listen opens the server's TCP port on all addresses of the host.
func Listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errors.Wrap(err, "port is taken, maybe by another bebench server: choose another with -p, the same at both ends")
	}
	return ln, errors.Wrap(err, "server port")
}

// Server serves tests to clients, several at once.
type Server struct {
	Hello Hello
	Limit time.Duration // of each step
	Once  bool          // one test, then return
	// Test runs one agreed test with a client.
	Test func(ctx context.Context, c *Conn) error
	// Foreign, if it is set, serves clients that do not speak our protocol, instead
	// of all else. It calls claim before the test, and gives up if that refuses.
	Foreign func(ctx context.Context, nc net.Conn, claim func() (refused string)) error
	// Ended is told of every client that was served or turned away; err is nil
	// after a good test. It may be called from several goroutines.
	Ended func(peer string, err error)

	mu    sync.Mutex
	taken bool
}

// Run serves clients on ln until ctx ends, or with Once until one test ended. It
// closes ln, waits for the tests that still run, and returns nil, or with Once
// the test's error. A client that fails or is refused ends only itself. Tests run
// on after the end of ctx until the end of hard.
func (s *Server) Run(ctx, hard context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	var wg sync.WaitGroup
	defer wg.Wait()
	var result error // written before cancel, read after wg.Wait
	for {
		nc, err := ln.Accept()
		if ctx.Err() != nil {
			if err == nil {
				nc.Close()
			}
			wg.Wait()
			return result
		}
		if errors.Is(err, net.ErrClosed) {
			return errors.Wrap(err, "accept")
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: others may end
			continue
		}
		wg.Go(func() {
			ran, err := s.serve(hard, nc)
			if s.Ended != nil {
				s.Ended(nc.RemoteAddr().String(), err)
			}
			if ran && s.Once {
				result = err
				cancel()
			}
		})
	}
}

// serve reports whether the client got as far as a test.
func (s *Server) serve(ctx context.Context, nc net.Conn) (ran bool, err error) {
	claim := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.Once && s.taken {
			return "the server runs one test only (-1) and has one"
		}
		s.taken, ran = true, true
		return ""
	}
	if s.Foreign != nil {
		err := s.Foreign(ctx, nc, claim)
		return ran, err
	}
	c := New(ctx, nc, s.Limit)
	defer c.Close()
	if err := c.Welcome(s.Hello, claim); err != nil {
		if ran { // agreed, but gone before it knew
			s.mu.Lock()
			s.taken = false
			s.mu.Unlock()
		}
		return false, err
	}
	return true, s.Test(ctx, c)
}
