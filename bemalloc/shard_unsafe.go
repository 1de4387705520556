package bemalloc

import (
	"sync"
	"unsafe"
)

const numShards = 16

// shard is a cache under a mutex.
type shard struct {
	mu sync.Mutex
	c  cache
	_  [64]byte
}

// newShards makes the shards; with open unset their magazines stay empty.
func newShards(open bool) []shard {
	s := make([]shard, numShards)
	for i := range s {
		if open {
			s[i].c.open()
		}
	}
	return s
}

// shard locks and returns a shard: the one that the goroutine's stack address
// points at, or the next that is free. Goroutines have stacks of their own, so
// most find theirs free and warm.
func (l *local) shard() *shard {
	var here byte
	at := uintptr(unsafe.Pointer(&here)) >> 13 * 0x9E3779B1 >> 8
	for i := range uintptr(numShards) {
		if s := &l.shards[(at+i)%numShards]; s.mu.TryLock() {
			return s
		}
	}
	s := &l.shards[at%numShards]
	s.mu.Lock()
	return s
}
