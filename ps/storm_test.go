package ps_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/ps"
)

// storm is goroutines that use one client in all ways at once.
type storm struct {
	t               *testing.T
	c               *ps.Client
	stop            atomic.Bool
	wg              sync.WaitGroup // of goroutines, and of calls of theirs
	issued, applied [movingKeys]atomic.Uint64
	done, failed    atomic.Int64
}

func (s *storm) end(err error) {
	if s.done.Add(1); err != nil {
		s.failed.Add(1)
	}
}

func (s *storm) keys(rng *rand.Rand) []uint64 {
	keys := make([]uint64, 1+rng.IntN(12))
	for i := range keys {
		keys[i] = rng.Uint64N(movingKeys)
	}
	return keys
}

func count(of *[movingKeys]atomic.Uint64, keys []uint64) {
	for _, key := range keys {
		of[key].Add(1)
	}
}

// limited is a context with a deadline that may be too short, and that may be cancelled.
func limited(rng *rand.Rand) (context.Context, context.CancelFunc) {
	limits := []time.Duration{time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond, 20 * time.Second}
	ctx, cancel := context.WithTimeout(context.Background(), limits[rng.IntN(len(limits))])
	if rng.IntN(4) == 0 {
		time.AfterFunc(time.Duration(rng.ExpFloat64()*3e6), cancel)
	}
	return ctx, cancel
}

func (s *storm) run(rng *rand.Rand) {
	for !s.stop.Load() {
		keys := s.keys(rng)
		switch ctx, cancel := limited(rng); rng.IntN(5) {
		case 0, 1:
			f, err := s.c.Fetch(ctx, keys)
			if s.end(err); err == nil {
				_ = f.Row(len(keys) - 1)[movingDim-1]
				f.Release()
			}
			cancel()
		case 2, 3:
			count(&s.issued, keys)
			err := s.c.Push(ctx, keys, make([]float32, len(keys)*movingDim))
			if s.end(err); err == nil {
				count(&s.applied, keys)
			}
			cancel()
		default:
			cancel()
			s.chain(keys, time.Duration(1+rng.IntN(100))*time.Millisecond)
		}
	}
}

// chain pushes, until that has an answer, and fetches then, all from done functions, which
// look at the client besides.
func (s *storm) chain(keys []uint64, timeout time.Duration) {
	s.wg.Add(1)
	p := &ps.PushCall{Keys: keys, Gradients: make([]float32, len(keys)*movingDim), Timeout: timeout}
	f := &ps.FetchCall{Keys: keys, Timeout: 20 * time.Second}
	count(&s.issued, keys)
	var pushed func(*ps.PushCall)
	pushed = func(p *ps.PushCall) {
		if m := s.c.Map(); s.c.Shards() < 1 || s.c.Update(m) != nil && !s.stop.Load() {
			s.t.Error("the client has no map")
		}
		switch s.end(p.Err); {
		case errors.Is(p.Err, archon.OutOfRange) || s.stop.Load(): // its shard has left
			s.wg.Done()
			return
		case p.Err != nil:
			p.Again, p.Timeout = true, 20*time.Second
			s.c.GoPush(p, pushed)
			return
		}
		count(&s.applied, keys)
		s.c.GoFetch(f, func(f *ps.FetchCall) {
			if s.end(f.Err); f.Err == nil {
				f.Release()
			}
			s.wg.Done()
		})
	}
	s.c.GoPush(p, pushed)
}

// TestMapClientStorm: 32 goroutines use one client with deadlines, cancels, repetitions and
// done functions that make calls, while maps change. Nothing hangs, every push that was
// answered is there, and none is there twice.
func TestMapClientStorm(t *testing.T) {
	m := newMovingTable(t, 4, nil, 0, 1, 2)
	c, err := ps.NewMapClient(movingDim, m.first, channel.Config{Service: "ps"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rng := seededRand(t)
	s := &storm{t: t, c: c}
	for i := range uint64(32) {
		of := rand.New(rand.NewPCG(rng.Uint64(), i))
		s.wg.Go(func() { s.run(of) })
	}
	defer s.wg.Wait()
	defer s.stop.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	from := m.first
	for i, owners := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 2, 3}, {0, 1, 2}, {2, 1, 0, 3}} {
		to := equalMap(uint32(2+i), m.endpoints[:slices.Max(owners)+1], owners...)
		if err := ps.Rebalance(ctx, from, to, patient); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	s.stop.Store(true)
	s.wg.Wait()
	t.Logf("%d calls, of which %d were given up", s.done.Load(), s.failed.Load())
	for key := range uint64(movingKeys) {
		of := m.shards[from.Owner(key)]
		eventually(t, "replicas agree", func() bool { return of[0].Version(key) == of[1].Version(key) })
		if v := of[0].Version(key); v < s.applied[key].Load() || v > s.issued[key].Load() {
			t.Errorf("key %d has %d pushes, of %d that were answered and %d", key, v, s.applied[key].Load(), s.issued[key].Load())
		}
	}
	// Calls under way when the client ends, end.
	s.stop.Store(false)
	for i := range uint64(32) {
		of := rand.New(rand.NewPCG(rng.Uint64(), i))
		s.wg.Go(func() {
			for !s.stop.Load() {
				ctx, cancel := limited(of)
				if f, err := c.Fetch(ctx, s.keys(of)); err == nil {
					f.Release()
				}
				cancel()
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	c.Close()
	s.stop.Store(true)
	s.wg.Wait()
}
