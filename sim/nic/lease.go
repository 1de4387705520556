package nic

import "sync/atomic"

// revoked is far below any number of readers.
const revoked = -1 << 30

// readers counts who reads a piece of memory now, and lets its owner take it
// back: after revoke no new reader gets in, and once idle none is left.
type readers struct{ n atomic.Int32 }

// acquire reports whether the memory may be read until release.
func (r *readers) acquire() bool {
	if r.n.Add(1) < 0 {
		r.n.Add(-1)
		return false
	}
	return true
}

// release ends a reading and reports whether it was the last of revoked memory.
func (r *readers) release() (last bool) { return r.n.Add(-1) == revoked }

// revoke lets no new reader in. Preconditions: called once.
func (r *readers) revoke() { r.n.Add(revoked) }

// idle reports, after revoke, that nobody reads any more. A reader that is being
// turned away may hide it for a moment, and then reports itself as the last.
func (r *readers) idle() bool { return r.n.Load() == revoked }

// isRevoked reports whether revoke was called.
func (r *readers) isRevoked() bool { return r.n.Load() < 0 }

// lease is what the packets of a queue pair hold on the memory of its requests.
// It is revoked when the queue pair fails, is reset or is destroyed; only when it
// is idle are the requests completed as flushed and their memory free.
type lease struct {
	readers
	q *QP
}

// stop revokes the lease unless that was done before.
func (l *lease) stop() {
	if !l.isRevoked() {
		l.revoke()
	}
}
