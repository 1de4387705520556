package ps_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/ps"
)

// pushes is a load of pushes of -1 and fetches.
type pushes struct {
	t      testing.TB
	c      *ps.Client
	pause  time.Duration
	end    chan struct{}
	wg     sync.WaitGroup
	calls  atomic.Int64
	pushes atomic.Int64

	mu    sync.Mutex
	times []time.Duration
}

const pushedKeys = 60

func startPushes(t testing.TB, c *ps.Client) *pushes { return startPacedPushes(t, c, 4, 0) }

// startPacedPushes has each of its callers pause after its calls.
func startPacedPushes(t testing.TB, c *ps.Client, callers int, pause time.Duration) *pushes {
	t.Helper()
	l := &pushes{pause: pause, t: t, c: c, end: make(chan struct{})}
	rng := seededRand(t)
	for range callers {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 1))
		l.wg.Go(func() { l.run(mine) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *pushes) run(rng *rand.Rand) {
	const n = 6
	keys, gradients := make([]uint64, n), make([]float32, n*replicaDim)
	for i := range gradients {
		gradients[i] = -1
	}
	for {
		select {
		case <-l.end:
			return
		case <-time.After(l.pause):
		}
		for i := range keys {
			keys[i] = rng.Uint64N(pushedKeys)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		began := time.Now()
		if err := l.c.Push(ctx, keys, gradients); err != nil {
			l.t.Errorf("push: %v", err)
		}
		l.pushes.Add(n)
		if f, err := l.c.Fetch(ctx, keys); err != nil {
			l.t.Errorf("fetch: %v", err)
		} else {
			f.Release()
		}
		cancel()
		l.mu.Lock()
		l.times = append(l.times, time.Since(began))
		l.mu.Unlock()
		l.calls.Add(1)
	}
}

func (l *pushes) more(n int64) {
	l.t.Helper()
	for from, end := l.calls.Load(), time.Now().Add(5*time.Minute); l.calls.Load() < from+n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) || l.t.Failed() {
			l.t.Fatal("the calls do not go on")
		}
	}
}

// take gives the p99 since the last take.
func (l *pushes) take() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.times) == 0 {
		return 0
	}
	slices.Sort(l.times)
	p99 := l.times[len(l.times)*99/100]
	l.times = l.times[:0]
	return p99
}

func (l *pushes) stop() {
	select {
	case <-l.end:
	default:
		close(l.end)
	}
	l.wg.Wait()
}

// sum gives the gradients that the rows got.
func (l *pushes) sum() (sum float64) {
	f, err := l.c.Fetch(context.Background(), keyRange(pushedKeys))
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Release()
	for i := range pushedKeys {
		for _, v := range f.Row(i) {
			if v != f.Row(i)[0] {
				l.t.Errorf("row %d is %v", i, f.Row(i))
			}
		}
		sum += float64(f.Row(i)[0])
	}
	return sum
}
