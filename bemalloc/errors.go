package bemalloc

import (
	"errors"
	"fmt"
)

// Errors of the pool, to be matched with errors.Is. Those that carry more are
// the types below and unwrap to one of these, or to the device's error.
var (
	// ErrTooLarge: no single registration can hold the request.
	ErrTooLarge = errors.New("bemalloc: request too large")
	// ErrLimit: Config.MaxBytes or a heap's quota is used up. See LimitError.
	ErrLimit = errors.New("bemalloc: limit reached")
	// ErrNoMemory: the system gave no memory or address space.
	ErrNoMemory = errors.New("bemalloc: out of memory")
	// ErrBadFree: the slice does not start where an allocation of this pool starts.
	ErrBadFree = errors.New("bemalloc: free of a slice that the pool did not hand out")
	// ErrDoubleFree: the buffer is free already.
	ErrDoubleFree = errors.New("bemalloc: double free")
	// ErrNotOwned: the slice does not lie within one live allocation of this pool.
	ErrNotOwned = errors.New("bemalloc: slice is not within one allocation of the pool")
	// ErrClosed: the pool or the heap is closed.
	ErrClosed = errors.New("bemalloc: closed")
	// ErrBadAlign: the alignment is not a power of two of at most 4 MiB, or the
	// size is negative.
	ErrBadAlign = errors.New("bemalloc: bad size or alignment")
)

// LimitError says which limit of the pool's own a request hit. It matches
// ErrLimit.
type LimitError struct {
	What string // "bemalloc.Config.MaxBytes", "bemalloc.Budget" or "heap quota"
	Used int64  // bytes counted against the limit
	Max  int64  // the limit in bytes
	Need int64  // bytes that the request needed on top

	room *waitRoom // where to wait for that to change; nil: nowhere
}

// Error names the limit, what is used of it, and the remedy.
func (e *LimitError) Error() string {
	return fmt.Sprintf("bemalloc: limit reached: %s is %d bytes, %d in use, %d more needed: free buffers or raise the limit",
		e.What, e.Max, e.Used, e.Need)
}

// Is matches ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// RegisterError says that a device refused to register a block. It unwraps to
// the Registrar's error, so that errors.Is finds the errno.
type RegisterError struct {
	Err        error
	Device     int    // which Registrar: 0 is Config.Registrar, i is Config.Also[i-1]
	Bytes      int64  // length of the refused registration
	Registered int64  // bytes that the pool had registered
	SoftLimit  uint64 // RLIMIT_MEMLOCK in bytes, soft and hard; ^uint64(0): unlimited
	HardLimit  uint64
	HasLimit   bool // the system has such a limit and could tell it
}

// Error names the length, the limits and the remedies.
func (e *RegisterError) Error() string {
	s := fmt.Sprintf("bemalloc: register %d bytes (%d registered so far): %v", e.Bytes, e.Registered, e.Err)
	if !e.HasLimit {
		return s
	}
	return s + fmt.Sprintf("; RLIMIT_MEMLOCK is %s (hard limit %s), %d needed: raise it with ulimit -l, the container's --ulimit memlock, or grant CAP_IPC_LOCK",
		limitText(e.SoftLimit), limitText(e.HardLimit), e.Registered+e.Bytes)
}

// Unwrap gives the Registrar's error.
func (e *RegisterError) Unwrap() error { return e.Err }

func limitText(v uint64) string {
	if v == ^uint64(0) {
		return "unlimited"
	}
	return fmt.Sprintf("%d bytes", v)
}
