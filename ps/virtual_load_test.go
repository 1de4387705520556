package ps_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/ps"
)

const (
	virtualKeys = 60
	virtualRate = 200 // requests a second
)

// virtualLoad are pushes of -1 and fetches that begin at random moments, whether earlier
// ones have ended or not.
type virtualLoad struct {
	t     *testing.T
	c     *ps.Client
	start time.Time
	end   context.CancelFunc
	wg    sync.WaitGroup
	stale bool // replicas may be apart: rows may lack pushes that were answered

	mu            sync.Mutex
	rng           *rand.Rand
	all           []virtualRequest
	issued, acked [virtualKeys]float64 // pushes, by key
	wrong         []string
}

// virtualRequest is when a request began and ended; 0: it has not.
type virtualRequest struct{ began, ended time.Duration }

func startVirtualLoad(t *testing.T, c *ps.Client, seed uint64) *virtualLoad {
	ctx, cancel := context.WithCancel(context.Background())
	l := &virtualLoad{t: t, c: c, start: time.Now(), end: cancel, rng: rand.New(rand.NewPCG(seed, 2))}
	l.wg.Go(func() {
		for next := time.Duration(0); ctx.Err() == nil; l.begin() {
			next += time.Duration(l.draw() * 1e9 / virtualRate)
			time.Sleep(next - time.Since(l.start))
		}
	})
	return l
}

func (l *virtualLoad) draw() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.ExpFloat64()
}

// begin begins a request.
func (l *virtualLoad) begin() {
	l.mu.Lock()
	keys := make([]uint64, 6)
	for i := range keys {
		keys[i] = l.rng.Uint64N(virtualKeys)
	}
	push := l.rng.IntN(2) == 0
	l.mu.Unlock()
	slices.Sort(keys)
	keys = slices.Compact(keys)
	l.wg.Go(func() { l.request(keys, push) })
}

// burst begins some requests, so that something is under way.
func (l *virtualLoad) burst() {
	for range 16 {
		l.begin()
		time.Sleep(time.Duration(10_000 + l.draw()*20_000))
	}
}

func (l *virtualLoad) request(keys []uint64, push bool) {
	ctx, cancel := context.WithTimeout(context.Background(), virtualDeadline)
	defer cancel()
	l.mu.Lock()
	i, answered := len(l.all), l.acked
	l.all = append(l.all, virtualRequest{began: time.Since(l.start)})
	if push {
		for _, k := range keys {
			l.issued[k]++
		}
	}
	l.mu.Unlock()
	var rows *ps.FetchCall
	var err error
	if push {
		gradients := make([]float32, len(keys)*virtualDim)
		for i := range gradients {
			gradients[i] = -1
		}
		err = l.c.Push(ctx, keys, gradients)
	} else {
		rows, err = l.c.Fetch(ctx, keys)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[i].ended = time.Since(l.start)
	switch {
	case err != nil:
		l.say("request at %v: %v", l.all[i].began, err)
	case push:
		for _, k := range keys {
			l.acked[k]++
		}
	default:
		for j, k := range keys {
			if got := float64(rows.Row(j)[0]); got > l.issued[k] || got < answered[k] && !l.stale {
				l.say("fetch at %v: key %d had %v pushes, %v were answered before and %v begun", l.all[i].began, k, got, answered[k], l.issued[k])
			}
		}
		rows.Release()
	}
}

// say notes what is wrong. The caller holds mu.
func (l *virtualLoad) say(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// p99 is that of the requests that began between two times, when all of them have ended.
func (l *virtualLoad) p99(from, to time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var took []time.Duration
	for _, r := range l.all {
		if r.began >= from && r.began < to {
			took = append(took, r.ended-r.began)
		}
	}
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[len(took)*99/100]
}

// now is the time on the clock of p99.
func (l *virtualLoad) now() time.Duration { return time.Since(l.start) }

func (l *virtualLoad) stopLoad() {
	l.end()
	l.wg.Wait()
}

// trace is a number that two runs have in common only if every request began and ended at
// the same nanosecond.
func (l *virtualLoad) trace() uint64 {
	h := fnv.New64a()
	for _, r := range l.all {
		h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(r.began)), uint64(r.ended)))
	}
	return h.Sum64()
}
