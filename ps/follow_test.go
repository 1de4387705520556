package ps

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// followLoad are pushes and fetches of random keys at random moments.
type followLoad struct {
	*modelTable
	c    *Client
	rng  *rand.Rand
	wait sync.WaitGroup

	mu            sync.Mutex
	issued, acked [modelKeys]int
	unknown       [modelKeys]bool // whether all of issued were applied
	agains        int
	used          []*PushCall
	times         []time.Duration
}

func (l *followLoad) keys() []uint64 {
	keys := make([]uint64, 1+l.rng.IntN(8))
	for i := range keys {
		keys[i] = l.rng.Uint64N(modelKeys)
	}
	return keys
}

func (l *followLoad) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(l.rng.ExpFloat64() * 2e6))
		keys := l.keys()
		if l.rng.IntN(2) == 0 {
			l.wait.Go(func() { l.push(keys) })
		} else {
			l.wait.Go(func() { l.fetch(keys) })
		}
	}
	l.wait.Wait()
}

// push pushes until it is done: what failed is repeated with Again.
func (l *followLoad) push(keys []uint64) {
	l.mu.Lock()
	p := &PushCall{}
	if n := len(l.used); n > 0 {
		p, l.used = l.used[n-1], l.used[:n-1]
	}
	p.Keys, p.Gradients, p.Timeout = keys, p.Gradients[:0], 5*time.Second
	for _, key := range keys {
		p.Gradients = append(p.Gradients, -1, float32(key))
	}
	for _, k := range keys {
		l.issued[k]++
	}
	l.mu.Unlock()
	began, over := time.Now(), make(chan struct{}, 1)
	for try := 0; ; try++ {
		p.Again = try > 0
		l.c.GoPush(p, func(*PushCall) { over <- struct{}{} })
		<-over
		if p.Err == nil {
			break
		}
		if text := p.Err.Error(); strings.Count(text, "the shard has map version") > 1 {
			l.t.Errorf("it is said twice: %s", text)
		}
		l.mu.Lock()
		l.agains++
		gone := errors.Is(p.Err, archon.OutOfRange) && l.trouble > 0
		if gone { // the shard is, and whether it applied its part is not known
			for _, k := range keys {
				l.unknown[k] = true
			}
		} else if l.trouble == 0 || try > 20 {
			l.t.Errorf("push: %v", p.Err)
			gone = true
		}
		l.mu.Unlock()
		if gone {
			return
		}
		time.Sleep(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		l.acked[k]++
	}
	l.times = append(l.times, time.Since(began))
	l.used = append(l.used, p)
}

func (l *followLoad) fetch(keys []uint64) {
	l.mu.Lock()
	before := l.acked
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	f, err := l.c.Fetch(ctx, keys)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.t.Errorf("fetch: %v", err)
		return
	}
	defer f.Release()
	for i, k := range keys {
		if row := f.Row(i); int(row[0]) < before[k] || int(row[0]) > l.issued[k] || row[1] != float32(k) {
			l.t.Errorf("key %d: %v, %d pushes were answered before, %d begun", k, row, before[k], l.issued[k])
		}
	}
}

// follow runs a load while the map changes, and tells how often a push had to be repeated.
func follow(t *testing.T, seed uint64, trouble float64) (agains int) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelTable(t, seed)
		defer m.close()
		m.trouble = trouble
		c := m.client(channel.Recovery{AttemptTimeout: 200 * time.Millisecond, MaxAttempts: 3, RetryBurst: 1000})
		defer c.Close()
		l := &followLoad{modelTable: m, c: c, rng: rand.New(rand.NewPCG(seed, 4))}
		over := make(chan struct{})
		go func() {
			defer close(over)
			for range 15 {
				time.Sleep(m.draw(100 * time.Millisecond))
				m.change()
			}
		}()
		l.run(2 * time.Second)
		<-over
		l.push(keysOfModel()) // so that the client has the last map
		if got := c.Map(); got.Version != 16 || c.Shards() != len(got.Replicas) {
			t.Errorf("SEED=%d: the client has version %d of 16", seed, got.Version)
		}
		for k, n := range l.counts {
			if n < l.acked[k] || n > l.issued[k] || n != l.issued[k] && !l.unknown[k] {
				t.Errorf("SEED=%d: key %d: %d pushes were begun, %d applied, %d answered", seed, k, l.issued[k], n, l.acked[k])
			}
		}
		if len(m.wrong) > 0 {
			t.Errorf("SEED=%d: %v", seed, m.wrong)
		}
		agains = l.agains
		slices.Sort(l.times)
		if p99 := l.times[len(l.times)*99/100]; trouble == 0 && p99 > 200*time.Millisecond {
			t.Errorf("SEED=%d: p99 of a push is %v", seed, p99)
		}
	})
	return agains
}

func keysOfModel() (keys []uint64) {
	for k := range uint64(modelKeys) {
		keys = append(keys, k)
	}
	return keys
}

// TestFollow: shards come and go, ranges and replicas move, each shard gets the new map at
// another moment, and no request fails; every push is applied once, also those
// that fail after they were applied, and are repeated with Again.
func TestFollow(t *testing.T) {
	agains := 0
	for seed := range uint64(30) {
		follow(t, seed, 0)
		agains += follow(t, seed, 0.2)
	}
	if agains < 30 {
		t.Errorf("control: %d pushes were repeated", agains)
	}
}

// TestFollowEnds: a request that waits for a map ends with its deadline, with its context
// and with the client, and Again goes on with it.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelTable(t, 1)
		defer m.close()
		c := m.client(channel.Recovery{})
		defer c.Close()
		newer := *m.maps[0]
		newer.Version = 2
		if err := c.Update(&newer); err != nil {
			t.Fatal(err)
		}
		keys := keysOfModel()
		p := &PushCall{Keys: keys, Timeout: 300 * time.Millisecond}
		for _, key := range keys {
			p.Gradients = append(p.Gradients, -1, float32(key))
		}
		over := make(chan struct{}, 1)
		push := func() time.Duration {
			began := time.Now()
			c.GoPush(p, func(*PushCall) { over <- struct{}{} })
			<-over
			return time.Since(began)
		}
		var wrong *WrongMapError
		if d := push(); !errors.As(p.Err, &wrong) || !errors.Is(p.Err, archon.DeadlineExceeded) || d != p.Timeout {
			t.Errorf("with a deadline: %v after %v", p.Err, d)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := c.Fetch(ctx, keys); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		f := &FetchCall{Keys: keys}
		fetched := make(chan time.Time, 1)
		began := time.Now()
		c.GoFetch(f, func(*FetchCall) { fetched <- time.Now() })
		if d := (<-fetched).Sub(began); !errors.As(f.Err, &wrong) || d < waitOlder || d > 2*waitOlder {
			t.Errorf("without a deadline: %v after %v", f.Err, d)
		}
		m.mu.Lock()
		m.maps = append(m.maps, &newer)
		for i := range m.at {
			m.at[i] = 2
		}
		m.mu.Unlock()
		p.Again = true
		if push(); p.Err != nil {
			t.Errorf("again: %v", p.Err)
		}
		if push(); p.Err != nil { // what was applied is not sent
			t.Errorf("again: %v", p.Err)
		}
		newest := newer
		newest.Version = 3
		if err := c.Update(&newest); err != nil {
			t.Fatal(err)
		}
		p.Again = false
		c.GoPush(p, func(*PushCall) { over <- struct{}{} })
		time.Sleep(time.Second / 10)
		c.Close()
		if <-over; !errors.Is(p.Err, archon.Unavailable) {
			t.Errorf("closed: %v", p.Err)
		}
		for k, n := range m.counts {
			if n != 1 {
				t.Errorf("key %d was pushed %d times", k, n)
			}
		}
		if c.Update(m.maps[1]) == nil {
			t.Error("a closed client takes a map")
		}
	})
}
