package bemalloc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// waitRoom is where goroutines wait for a limit to have room again. Whoever gives
// something back notifies; without waiters that costs one load.
type waitRoom struct {
	waiting atomic.Int32
	mu      sync.Mutex
	changed chan struct{} // closed at the next notification
}

func (r *waitRoom) init() { r.changed = make(chan struct{}) }

// occupied reports whether somebody waits.
func (r *waitRoom) occupied() bool { return r.waiting.Load() > 0 }

// next gives the channel that the next notification closes.
func (r *waitRoom) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func (r *waitRoom) notify() {
	if !r.occupied() {
		return
	}
	r.mu.Lock()
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
}

// AllocWait is Alloc that waits for buffers to be freed when the pool's limit
// (ErrLimit) stands against it, until ctx ends: then the error matches both
// ctx.Err() and ErrLimit. What can never succeed fails at once. While somebody
// waits, frees bypass the caches of handle-less calls; objects in the caches of other
// heaps that do not free anything stay there.
func (p *Pool) AllocWait(ctx context.Context, n int) ([]byte, error) {
	return p.allocWait(ctx, func() ([]byte, error) { return p.Alloc(n) })
}

// AllocWait is Pool.AllocWait from this heap, which waits for its quota too.
func (h *Heap) AllocWait(ctx context.Context, n int) ([]byte, error) {
	return h.p.allocWait(ctx, func() ([]byte, error) { return h.Alloc(n) })
}

func (p *Pool) allocWait(ctx context.Context, alloc func() ([]byte, error)) ([]byte, error) {
	var room *waitRoom
	defer func() { p.leave(room) }()
	for {
		var changed <-chan struct{}
		if room != nil {
			changed = room.next() // before the attempt, so that no change is missed
		}
		b, err := alloc()
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Need > limit.Max || limit.room == nil {
			return b, err
		}
		if limit.room != room {
			p.leave(room)
			room = limit.room
			p.enter(room)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("bemalloc: wait for memory: %w: %w", ctx.Err(), err)
		}
	}
}

// enter joins a room. The first one that waits for the pool turns the caches off,
// so that what is freed is seen.
func (p *Pool) enter(r *waitRoom) {
	if r.waiting.Add(1) == 1 && r == &p.room {
		p.settle()
	}
}

// leave quits a room, if any; the last one turns the caches on again.
func (p *Pool) leave(r *waitRoom) {
	if r == nil {
		return
	}
	if r.waiting.Add(-1) == 0 && r == &p.room {
		p.settle()
	}
}

// settle turns the caches off if somebody waits for the pool, else on. It follows every
// change between the two, so the last one finds what is then true.
func (p *Pool) settle() {
	p.settleMu.Lock()
	defer p.settleMu.Unlock()
	if p.room.occupied() {
		p.flushCaches(flushPause)
	} else {
		p.local.resume()
	}
}

// someoneWaits reports whether anybody waits for the pool or for a quota.
func (p *Pool) someoneWaits() bool {
	for _, q := range *p.quotas.Load() {
		if q != nil && q.room.occupied() {
			return true
		}
	}
	return p.room.occupied()
}

// wakeAll lets every waiter see that the pool is closed.
func (p *Pool) wakeAll() {
	p.room.notify()
	for _, q := range *p.quotas.Load() {
		if q != nil {
			q.room.notify()
		}
	}
}
