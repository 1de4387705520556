package netconn

import (
	"net"
	"os"
	"sync"
	"time"
)

// deadline ends the waits of one direction when its time has come, or when the
// connection is closed.
type deadline struct {
	mu     sync.Mutex
	now    *expiry
	timer  *time.Timer
	round  int // which timer counts
	closed bool
}

// expiry is a context that ends once, with err. Those that wait hold on to it, so
// a deadline that is moved after it passed does not take the error from them.
type expiry struct {
	done chan struct{}
	err  error // set before done is closed
}

func newExpiry() *expiry { return &expiry{done: make(chan struct{})} }

func (e *expiry) end(err error) {
	e.err = err
	close(e.done)
}

// Deadline is a context's: the time is not told.
func (*expiry) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is a context's.
func (e *expiry) Done() <-chan struct{} { return e.done }

// Err is a context's.
func (e *expiry) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

// Value is a context's: there is none.
func (*expiry) Value(any) any { return nil }

// current is what a wait that begins now waits for.
func (d *deadline) current() *expiry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// set moves the deadline; the zero time is none.
func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return net.ErrClosed
	}
	d.stop()
	left, passed := time.Until(t), d.now.Err() != nil
	switch {
	case !t.IsZero() && left <= 0:
		if !passed {
			d.now.end(os.ErrDeadlineExceeded)
		}
		return nil
	case passed:
		d.now = newExpiry()
	}
	if !t.IsZero() {
		round := d.round
		d.timer = time.AfterFunc(left, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.round == round {
				d.now.end(os.ErrDeadlineExceeded)
			}
		})
	}
	return nil
}

// stop makes the timer count no more, even if it fires this moment.
func (d *deadline) stop() {
	d.round++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// close ends every wait for good.
func (d *deadline) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	d.closed = true
	if d.now.Err() != nil {
		d.now = newExpiry()
	}
	d.now.end(net.ErrClosed)
}
