package allocjob

import "sync/atomic"

// batch is a group of buffers on the way to another thread. It belongs to its
// sender; the receiver clears busy when it freed them.
type batch struct {
	next *batch
	busy atomic.Bool
	n    uint32
	p    [32]*byte
}

// mailbox is a lock-free stack of batches: many push, the owner takes all.
type mailbox struct {
	head atomic.Pointer[batch]
	_    [120]byte // a cache line pair of its own
}

func (m *mailbox) push(b *batch) {
	for {
		b.next = m.head.Load()
		if m.head.CompareAndSwap(b.next, b) {
			return
		}
	}
}

func (m *mailbox) takeAll() *batch {
	if m.head.Load() == nil {
		return nil
	}
	return m.head.Swap(nil)
}
