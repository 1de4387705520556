package msgtest

import (
	"context"
	"sync/atomic"
)

// idle is the parcels of a line that may be sent. Any goroutine puts them there, one at a
// time takes them: all that are there at once. A channel would cost more than a transport
// spends on a short message.
type idle struct {
	put   atomic.Pointer[parcel] // the newest first
	waits atomic.Bool            // the taker does, and nobody has rung
	bell  chan struct{}
	taken *parcel // the taker's
}

func newIdle() *idle { return &idle{bell: make(chan struct{}, 1)} }

// add is any goroutine's.
func (q *idle) add(pc *parcel) {
	for {
		pc.next = q.put.Load()
		if q.put.CompareAndSwap(pc.next, pc) {
			break
		}
	}
	if q.waits.Load() && q.waits.CompareAndSwap(true, false) {
		select {
		case q.bell <- struct{}{}:
		default:
		}
	}
}

// take waits for a parcel.
func (q *idle) take(ctx context.Context) (*parcel, error) {
	for !q.any() {
		q.waits.Store(true) // before the last look
		if q.put.Load() != nil {
			break
		}
		select {
		case <-q.bell: // perhaps for what was taken since
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	pc := q.taken
	if pc == nil {
		pc = q.put.Swap(nil)
	}
	q.taken, pc.next = pc.next, nil
	return pc, nil
}

// any reports whether take would not wait. It is the taker's.
func (q *idle) any() bool { return q.taken != nil || q.put.Load() != nil }

// giveBack is the taker's, for what it did not post.
func (q *idle) giveBack(parcels ...*parcel) {
	for _, pc := range parcels {
		pc.next, q.taken = q.taken, pc
	}
}
