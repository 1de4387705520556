package be

import (
	"fmt"

	"github.com/byteexpress/byteexpress/be/core"
)

// MaxWeight is the largest weight of a socket.
const MaxWeight = core.MaxWeight

// SetWeight gives the socket w shares of what its engine sends, 1 to MaxWeight; a
// new socket has 1. Sockets that have messages waiting share the engine in
// proportion to their weights, in bytes; those that have none cost and get nothing.
// It is about this side's sending only.
func (s *Socket) SetWeight(w int) error {
	if w < 1 || w > MaxWeight {
		return &ConfigError{"weight of a socket", int64(w), fmt.Sprintf("1 to %d", MaxWeight)}
	}
	return s.set(func() { s.core.Engine().SetWeight(s.core, w) })
}

// set runs f, about an open socket, on the worker.
func (s *Socket) set(f func()) error {
	if s.ended.Load() {
		return s.err
	}
	if !s.conn.w.submit(calling(f)) {
		return ErrClosed
	}
	return nil
}
