package archon

import (
	"sync/atomic"
	"time"
)

// load is how busy a server's workers are: it decides which calls come too late to
// be worth the wait. Without it, a server with more calls than it can answer would run
// each when its deadline has nearly passed, and answer none in time. It has no clock.
type load struct {
	workers int64
	mean    atomic.Int64 // nanoseconds that a handler takes, of late
	held    atomic.Int64 // bytes of requests
	streams atomic.Int64 // under way
}

// meanWeight is how many handlers the mean is of, about.
const meanWeight = 16

// took notes how long a handler ran.
func (l *load) took(d time.Duration) {
	old := l.mean.Load()
	if old == 0 {
		l.mean.Store(int64(d))
		return
	}
	l.mean.Store(old + (int64(d)-old)/meanWeight)
}

// wait is how long a call behind that many others waits for a worker, about.
func (l *load) wait(queued int) time.Duration {
	return time.Duration(int64(queued) * l.mean.Load() / l.workers)
}

// admit refuses a call whose wait would take more than half of its time. With an
// empty queue there is none, whatever the handlers took: they are measured anew.
func (l *load) admit(timeout time.Duration, queued int) error {
	if timeout != 0 && l.wait(queued) > timeout/2 {
		return errWait
	}
	return nil
}

// hold counts n bytes of a request, unless they are too many.
func (l *load) hold(n int, most int64) bool {
	if l.held.Add(int64(n)) <= most {
		return true
	}
	l.held.Add(-int64(n))
	return false
}

func (l *load) release(n int) { l.held.Add(-int64(n)) }
