package bemalloc

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
)

// anySize draws from all that a pool serves, mostly small.
func anySize(r *rand.Rand) int {
	switch n := r.IntN(1200); {
	case n == 0:
		return 1 + r.IntN(9<<20)
	case n <= 10:
		return 1 + r.IntN(900<<10)
	case n < 30:
		return 1 + r.IntN(200<<10)
	}
	return 1 + r.IntN(3000)
}

// mixed is one goroutine of TestMixed.
type mixed struct {
	t *testing.T
	p *Pool
	h *Heap // nil: the pool's calls
	r *rand.Rand
}

// alloc allocates in one of the ways that there are. At the limit, and when the device
// refuses, it gives nothing.
func (m *mixed) alloc() tagged {
	n, align := anySize(m.r), 1<<m.r.IntN(14)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(m.r.IntN(300))*time.Microsecond)
	defer cancel()
	var b []byte
	var err error
	switch way := m.r.IntN(20); {
	case way == 0 && m.h != nil:
		b, err = m.h.AllocWait(ctx, n)
	case way == 0:
		b, err = m.p.AllocWait(ctx, n)
	case way < 4 && m.h != nil:
		b, err = m.h.AllocAligned(n, align)
	case way < 4:
		b, err = m.p.AllocAligned(n, align)
	case m.h != nil:
		b, err = m.h.Alloc(n)
	default:
		b, err = m.p.Alloc(n)
	}
	if err != nil {
		if !errors.Is(err, ErrLimit) && !errors.Is(err, errRefused) {
			m.t.Error(err)
		}
		return tagged{}
	}
	x := tagged{b, byte(m.r.Uint32())}
	x.write()
	return x
}

func (m *mixed) free(x tagged) {
	if !x.intact() {
		m.t.Errorf("a buffer of %d bytes was overwritten", len(x.b))
	}
	if _, err := m.p.MR(x.b[len(x.b)/2:]); err != nil {
		m.t.Error(err)
	}
	free := m.p.Free
	if m.h != nil && m.r.IntN(4) > 0 {
		free = m.h.Free
	}
	if err := free(x.b); err != nil {
		m.t.Error(err)
	}
}

// renew gives the goroutine another heap and lets another goroutine close the old one.
func (m *mixed) renew(o HeapOptions) {
	if old := m.h; old != nil {
		done := make(chan error)
		go func() { done <- old.Close() }()
		if err := <-done; err != nil {
			m.t.Error(err)
		}
	}
	m.h = m.p.NewHeap(o)
}

// TestMixed does everything at once: pool, heaps and heaps with quotas that come and go,
// buffers that any goroutine frees, waiters that give up, a device that refuses at times, a
// limit, trimming, and a changing number of Ps. In the end nothing is left.
func TestMixed(t *testing.T) {
	seed := newRand(t).Uint64()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	kinds(t, func(t *testing.T, cfg Config) {
		const workers, limit = 32, 64 << 20
		dev := newRegistrar(t)
		cfg.Registrar, cfg.MaxBytes, cfg.RetainBytes = dev, limit, -1
		p := newPool(t, cfg)
		type slot struct {
			sync.Mutex
			x tagged
		}
		var slots [400]slot
		swap := func(i int, x tagged) tagged {
			slots[i].Lock()
			defer slots[i].Unlock()
			x, slots[i].x = slots[i].x, x
			return x
		}
		r := rand.New(rand.NewPCG(seed, workers))
		stop := background(func() {
			runtime.GOMAXPROCS(1 + r.IntN(5))
			dev.mu.Lock()
			dev.fail = r.IntN(3) == 0
			dev.mu.Unlock()
			p.Trim(r.Int64N(limit))
			if s := p.Stats(); s.RegisteredBytes > limit || s.FreeBytes < 0 || s.InUseBytes < 0 || s.CachedBytes < 0 {
				t.Errorf("%+v", s)
			}
			time.Sleep(2 * time.Millisecond)
		})
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				m := mixed{t: t, p: p, r: rand.New(rand.NewPCG(seed, uint64(w)))}
				for i := range 2000 {
					if w%2 == 0 && i%500 == 0 {
						m.renew(HeapOptions{QuotaBytes: int64(w%4) << 21})
					}
					at := m.r.IntN(len(slots))
					x := swap(at, tagged{})
					if x.b == nil {
						x = swap(at, m.alloc())
					}
					if x.b != nil {
						m.free(x)
					}
				}
				if m.h != nil {
					if err := m.h.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		stop()
		dev.fail = false
		for i := range slots {
			if x := slots[i].x; x.b != nil {
				free(t, p, x.b)
			}
		}
		p.Trim(0)
		checkIdle(t, p)
		if s := p.Stats(); s.RegisteredBytes != 0 || p.numQuotas() != 0 || p.runs.sharers != 0 || p.runs.shared != 0 || p.local.paused {
			t.Errorf("%d bytes registered, %d quotas, %d caches share %d units, caches off: %v", s.RegisteredBytes, p.numQuotas(), p.runs.sharers, p.runs.shared, p.local.paused)
		}
	})
}
