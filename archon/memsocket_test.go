package archon

import (
	"errors"
	"sync"
	"testing"
)

// memSocket is one end of a pair of sockets in memory, for tests: it keeps account of
// every buffer, and misbehaves on demand. Its one goroutine runs all callbacks.
type memSocket struct {
	t      testing.TB
	ledger *ledger
	peer   *memSocket

	mu     sync.Mutex
	wake   *sync.Cond
	events []func() // for the goroutine, in order
	recv   func([]byte, error)
	early  [][]byte // arrived before OnMessage
	err    error
	refuse int      // so many Posts are refused with ErrQueueFull
	lose   int      // so many messages are lost with an error
	stall  bool     // messages wait
	stuck  []func() // those that do
}

// ledger knows the buffers that somebody owns.
type ledger struct {
	mu   sync.Mutex
	live map[*byte]int
}

func (l *ledger) alloc(n int) []byte {
	b := make([]byte, n, n+1)
	for i := range b {
		b[i] = 0xa5 // whoever relies on zeros shows
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live[&b[:1][0]] = n
	return b
}

// end takes a buffer off the ledger; what is not on it was freed before.
func (l *ledger) end(t testing.TB, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &b[:1][0]
	if _, ok := l.live[p]; !ok {
		t.Errorf("buffer of %d bytes freed or posted twice", len(b))
	}
	delete(l.live, p)
	for i := range b {
		b[i] = 0x5a // whoever uses it after shows
	}
}

// memPair gives two connected sockets. When the test ends, no buffer may be left.
func memPair(t testing.TB) (a, b *memSocket) {
	l := &ledger{live: map[*byte]int{}}
	a, b = &memSocket{t: t, ledger: l}, &memSocket{t: t, ledger: l}
	a.peer, b.peer = b, a
	var all sync.WaitGroup
	for _, s := range []*memSocket{a, b} {
		s.wake = sync.NewCond(&s.mu)
		all.Go(s.run)
	}
	t.Cleanup(func() {
		a.Close()
		b.Close()
		all.Wait()
		for _, n := range l.live {
			t.Errorf("buffer of %d bytes leaked", n)
		}
	})
	return a, b
}

func (s *memSocket) run() {
	for {
		s.mu.Lock()
		for len(s.events) == 0 {
			if s.err != nil {
				fn := s.recv
				s.recv = nil
				s.mu.Unlock()
				if fn != nil {
					fn(nil, s.err)
				}
				return
			}
			s.wake.Wait()
		}
		event := s.events[0]
		s.events = s.events[1:]
		s.mu.Unlock()
		event()
	}
}

func (s *memSocket) later(event func()) {
	s.events = append(s.events, event)
	s.wake.Signal()
}

func (s *memSocket) Alloc(n int) ([]byte, error) { return s.ledger.alloc(n), nil }
func (s *memSocket) Free(b []byte)               { s.ledger.end(s.t, b) }
func (s *memSocket) MaxMessage() int             { return 1 << 20 }
func (s *memSocket) Service() string             { return "mem" }

var errLost = errors.New("lost on purpose")

func (s *memSocket) Post(b []byte, done func(error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.refuse > 0:
		s.refuse--
		return ErrQueueFull
	case s.lose > 0:
		s.lose--
		s.later(func() {
			s.ledger.end(s.t, b)
			done(errLost)
		})
		return nil
	}
	send := func() {
		s.peer.deliver(b)
		done(nil)
	}
	if s.stall {
		s.stuck = append(s.stuck, send)
	} else {
		s.later(send)
	}
	return nil
}

// setStall lets messages wait, or go on.
func (s *memSocket) setStall(stall bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stall = stall
	if !stall {
		for _, send := range s.stuck {
			s.later(send)
		}
		s.stuck = nil
	}
}

// deliver hands a copy of b to this end's callback.
func (s *memSocket) deliver(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	copied := s.ledger.alloc(len(b))
	copy(copied, b)
	if s.recv == nil {
		s.early = append(s.early, copied)
		return
	}
	fn := s.recv
	s.later(func() { fn(copied, nil) })
}

func (s *memSocket) OnMessage(fn func([]byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recv = fn
	for _, b := range s.early {
		s.later(func() { fn(b, nil) })
	}
	s.early = nil
	s.wake.Signal()
}

func (s *memSocket) Close() error {
	s.end(errors.New("closed here"))
	s.peer.end(errors.New("closed by the peer"))
	return nil
}

func (s *memSocket) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		for _, send := range s.stuck {
			s.later(send)
		}
		s.stuck = nil
		s.wake.Signal()
	}
}

// memRPC connects a client with a server in memory.
func memRPC(t testing.TB, s *Server, cfg ClientConfig) (*Client, *memSocket, *memSocket) {
	a, b := memPair(t)
	s.ServeSocket(b)
	c := NewClient(a, cfg)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		s.Close()
	})
	return c, a, b
}
