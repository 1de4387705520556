package archon

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// overload is a server with a known capacity that is offered more, in virtual time.
type overload struct {
	workers  int
	service  func(rng *rand.Rand) time.Duration // of one call; 1 ms on average
	timeout  time.Duration                      // of a call; 0: none
	queue    int
	offered  float64 // calls, in capacities
	careless bool    // the server takes calls that will be too late
}

type overloadResult struct {
	goodput         float64 // calls answered in time, in capacities
	answered, late  int64
	refused         int64
	slowestRefusal  time.Duration
	refusedNotRetry int64
	slowestInTime   time.Duration
}

const overloadTime = time.Second

func (o overload) run(t *testing.T, seed uint64) (r overloadResult) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var running, peak atomic.Int64
		s, m := NewServer(ServerConfig{Workers: o.workers, Queue: o.queue}), NewMethod("test.Work")
		if o.careless {
			s.load.workers = 1 << 40 // no wait is too long
		}
		times := make(chan time.Duration, 1<<16)
		rng := rand.New(rand.NewPCG(seed, 0))
		s.Handle(m, func(call *ServerCall) error {
			peak.Store(max(peak.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(<-times)
			return nil
		})
		c, _, _ := memRPC(t, s, ClientConfig{})
		var answered, late, refused, notRetry, slowRefusal, slowest atomic.Int64
		capacity := float64(o.workers) / 1e-3 // calls a second
		start := time.Now()
		var next time.Duration
		for next < overloadTime {
			time.Sleep(time.Until(start.Add(next)))
			times <- o.service(rng)
			req, err := c.Alloc(100)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			err = c.Go(&Call{Method: m, Request: req, Timeout: o.timeout}, func(call *Call) {
				call.Response.Release()
				took := int64(time.Since(at))
				switch {
				case call.Err == nil:
					answered.Add(1)
					slowest.Store(max(slowest.Load(), took))
				case errors.Is(call.Err, ResourceExhausted):
					refused.Add(1)
					slowRefusal.Store(max(slowRefusal.Load(), took))
					<-times // is not run
					if !IsRetryable(call.Err) {
						notRetry.Add(1)
					}
				default:
					late.Add(1)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			next += time.Duration(rng.ExpFloat64() / (o.offered * capacity) * 1e9) // Poisson arrivals
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		r = overloadResult{
			goodput: float64(answered.Load()) / (capacity * overloadTime.Seconds()), answered: answered.Load(), late: late.Load(), refused: refused.Load(),
			slowestRefusal: time.Duration(slowRefusal.Load()), refusedNotRetry: notRetry.Load(), slowestInTime: time.Duration(slowest.Load()),
		}
		if int(peak.Load()) > o.workers {
			t.Errorf("%d handlers ran at once on %d workers", peak.Load(), o.workers)
		}
	})
	return r
}

func always(*rand.Rand) time.Duration { return time.Millisecond }

// skewed takes 0.5 ms mostly, and 10 ms for one call in 19: 1 ms on average.
func skewed(rng *rand.Rand) time.Duration {
	if rng.IntN(19) == 0 {
		return 10 * time.Millisecond
	}
	return time.Millisecond / 2
}

// TestOverload: a server that is offered twice what it can do does at least 80 % of
// what it can, in time, and refuses the rest at once, retryably.
func TestOverload(t *testing.T) {
	for desc, o := range map[string]overload{
		"short deadlines":      {workers: 8, service: always, timeout: 20 * time.Millisecond, offered: 2},
		"long deadlines":       {workers: 8, service: always, timeout: 500 * time.Millisecond, offered: 2},
		"skewed":               {workers: 8, service: skewed, timeout: 50 * time.Millisecond, offered: 2},
		"one worker":           {workers: 1, service: skewed, timeout: 100 * time.Millisecond, offered: 2},
		"ten times":            {workers: 4, service: always, timeout: 50 * time.Millisecond, offered: 10},
		"no deadlines":         {workers: 8, service: skewed, queue: 64, offered: 2},
		"just what it can do":  {workers: 8, service: always, timeout: 100 * time.Millisecond, offered: 1},
		"half of what it can":  {workers: 8, service: skewed, timeout: 100 * time.Millisecond, offered: 0.5},
		"a queue of its own":   {workers: 8, service: always, timeout: 20 * time.Millisecond, offered: 2, queue: 16},
		"a very long queue":    {workers: 8, service: always, timeout: 20 * time.Millisecond, offered: 2, queue: 1 << 14},
		"many workers":         {workers: 64, service: skewed, timeout: 50 * time.Millisecond, offered: 2},
		"deadlines of a call":  {workers: 8, service: always, timeout: 3 * time.Millisecond, offered: 2},
		"overload by a little": {workers: 8, service: skewed, timeout: 50 * time.Millisecond, offered: 1.2},
	} {
		t.Run(desc, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			r := o.run(t, seed)
			t.Logf("seed %d: %+v", seed, r)
			want := 0.8 * min(1, o.offered)
			if r.goodput < want {
				t.Errorf("goodput is %.2f of the capacity, want %.2f", r.goodput, want)
			}
			if r.refusedNotRetry != 0 || r.slowestRefusal > time.Millisecond {
				t.Errorf("%d refusals that must not be repeated, the slowest after %v", r.refusedNotRetry, r.slowestRefusal)
			}
			if o.offered <= 0.5 && r.refused+r.late != 0 {
				t.Errorf("%d calls refused and %d late without overload", r.refused, r.late)
			}
			if o.timeout != 0 && r.slowestInTime > o.timeout {
				t.Errorf("an answer after %v", r.slowestInTime)
			}
		})
	}
}

// The control: a server that takes every call answers each when it is too late.
func TestOverloadWithoutAdmission(t *testing.T) {
	r := overload{workers: 8, service: always, timeout: 20 * time.Millisecond, offered: 2, queue: 1 << 14, careless: true}.run(t, 1)
	if r.goodput > 0.5 {
		t.Errorf("goodput is %.2f of the capacity all the same: %+v", r.goodput, r)
	}
}

// TestRequestMemoryIsBounded: what waits for workers may not be more than
// MaxRequestBytes.
func TestRequestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, _ := blockServer(t, ServerConfig{Workers: 1, MaxRequestBytes: 1000})
		c, _, _ := memRPC(t, s, ClientConfig{})
		var refused atomic.Int64
		for range 5 { // of 300 bytes with the header
			req, _ := c.Alloc(300 - HeaderSize)
			if err := c.Go(&Call{Method: block, Request: req, Timeout: time.Minute}, func(call *Call) {
				if errors.Is(call.Err, ResourceExhausted) && IsRetryable(call.Err) {
					refused.Add(1)
				}
			}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if refused.Load() != 2 || s.Stats().Overloaded != 2 {
			t.Errorf("%d of 5 refused, %d counted, want 2: 900 of 1000 bytes are held", refused.Load(), s.Stats().Overloaded)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := s.load.held.Load(); n != 0 {
			t.Errorf("%d bytes held with nothing outstanding", n)
		}
	})
}
