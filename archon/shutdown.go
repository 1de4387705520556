package archon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
)

// Shutdown ends the server gently: listeners close, clients are told to go away, new
// calls are refused with a retryable Unavailable, and those under way end as
// usual. When the last has ended, or ctx has, the server closes; in the second case
// Shutdown gives ctx's error, and what was still under way was cut off. It must not be
// called from a handler.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining.Store(true)
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.tell(header{kind: kindGoAway, code: Unavailable}, "shutting down", false)
	}
	s.mu.Unlock()
	var err error
	for err == nil && s.busy() {
		select {
		case <-s.idle:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.Close()
	return err
}

// busy tells whether calls are under way, or may still be on their way here.
func (s *Server) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.open.Load() != 0 || !c.last.Load() {
			return true
		}
	}
	return false
}

// lookAgain makes Shutdown look whether there is still something under way.
func (s *Server) lookAgain() {
	select {
	case s.idle <- struct{}{}:
	default:
	}
}

// newIncarnation draws a number that another start of the server does not have.
func newIncarnation() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return max(1, binary.LittleEndian.Uint64(b[:]))
}
