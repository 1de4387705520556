package archon

import "sync/atomic"

type serverStats struct {
	overloaded   atomic.Uint64
	draining     atomic.Uint64
	oneWayFailed atomic.Uint64
}

// ServerStats counts what a server has done since it was made.
type ServerStats struct {
	Overloaded   uint64 // calls refused with a retryable ResourceExhausted
	Draining     uint64 // calls refused because of Shutdown
	OneWayFailed uint64 // one-way calls that failed or were refused, which nobody else hears of
	Streams      int    // under way
}

// Stats gives the counts.
func (s *Server) Stats() ServerStats {
	return ServerStats{
		Overloaded: s.stats.overloaded.Load(), Draining: s.stats.draining.Load(),
		OneWayFailed: s.stats.oneWayFailed.Load(), Streams: int(s.load.streams.Load()),
	}
}
