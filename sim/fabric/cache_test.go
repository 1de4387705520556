package fabric

import (
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// operations is the rate, in millions a second, of 8-byte operations over n queue
// pairs between two hosts, each on one that is chosen by chance, so many at a time.
func operations(t testing.TB, c Contexts, op qp.Opcode, n, outstanding int) (rate float64, stats CacheStats) {
	t.Helper()
	f, err := Pair(Config{Seed: 1, NIC: NICConfig{Contexts: c}}, Link{Gbps: 200, Delay: 10 * des.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	x, y := f.end(t, 0, 4096), f.end(t, 1, 4096)
	var qps []*QP
	for range n {
		caps := qp.Caps{SendWR: 64, RecvWR: 1, SendSGE: 1, RecvSGE: 1}
		var ends [2]*QP
		for i, e := range []*end{x, y} {
			if ends[i], err = e.h.NewQP(e.cq, e.cq, caps); err != nil {
				t.Fatal(err)
			}
		}
		for i, e := range []*end{y, x} {
			p := qp.Path{Access: mr.RemoteWrite | mr.RemoteRead, Global: true, MTU: qp.MTU4096, MaxReads: 16, MaxDestReads: 16, DGID: e.h.GID(), DestNum: ends[1-i].Num()}
			if err := p.Connect(ends[i]); err != nil {
				t.Fatal(err)
			}
		}
		qps = append(qps, ends[0])
	}
	rng := des.NewStream(1, 99, 0, 0)
	done := 0
	post := func() {
		wr := qp.SendWR{Opcode: op, Flags: qp.Signaled, SGEs: x.sge(8), RemoteAddr: y.reg.Addr, RKey: y.reg.RKey}
		for {
			_, err := qps[rng.N(int64(n))].PostSend([]qp.SendWR{wr})
			if err == nil {
				return
			}
			if err != qp.ErrQueueFull {
				t.Fatal(err)
			}
		}
	}
	x.done = func(c cq.Completion) {
		if c.Status != cq.Success {
			t.Fatal(c.Err())
		}
		done++
		post()
	}
	for range outstanding {
		post()
	}
	const warm, span = 100 * des.Microsecond, 400 * des.Microsecond
	runTo(t, f, warm)
	before, was := done, f.Host(0).Caches().Contexts
	runTo(t, f, warm+span)
	s := f.Host(0).Caches().Contexts
	return float64(done-before) / (float64(span) / float64(des.Microsecond)), CacheStats{s.Hits - was.Hits, s.Misses - was.Misses}
}

// TestCacheLaw: of n contexts that are used with equal chance, one that is not there
// is used with probability 1 - entries/n; and so many fetches run at a time. Within
// 5 %.
func TestCacheLaw(t *testing.T) {
	cfg := Cache{Entries: 273, Fetches: 16, Miss: 800 * des.Nanosecond}
	for _, n := range []int{100, 300, 512, 4096} {
		var c cache
		c.init(&cfg)
		contexts := make([]entry, n)
		rng := des.NewStream(1, 98, 0, 0)
		var end des.Time
		for range 200_000 { // each use waits for the one before it, but for the fetch
			x := &contexts[rng.N(int64(n))]
			if at, fetched := c.touch(x, 0, cfg.Miss); fetched {
				c.arrived(x)
				end = at
			}
		}
		miss := float64(c.stats.Misses) / float64(c.stats.Hits+c.stats.Misses)
		if want := max(0, 1-273/float64(n)); !near(miss, want, 0.05) && miss > 0.002 {
			t.Errorf("%d contexts: %.3f of the uses miss, want %.3f", n, miss, want)
		}
		if c.stats.Misses > 1000 {
			if rate, want := float64(c.stats.Misses)/float64(end), 16/float64(cfg.Miss); !near(rate, want, 0.05) {
				t.Errorf("%d contexts: %.4g fetches a picosecond, want %.4g", n, rate, want)
			}
		}
	}
}

// TestCache holds the NIC to a public measurement of two ConnectX-6 and 32 threads,
// within 10 %. Each thread keeps 3 READs or 6 WRITEs under way: with more of them,
// operations wait together for the context that they share, and fewer fetches do.
func TestCache(t *testing.T) {
	c := ContextsCX6()
	cases := []struct {
		op          qp.Opcode
		qps, thread int
		public      float64
	}{
		{qp.Read, 512, 3, 42}, {qp.Read, 32, 3, 83}, {qp.Read, 4096, 3, 21},
		{qp.Write, 32, 6, 123}, {qp.Write, 4096, 6, 111},
	}
	if raceEnabled {
		cases = cases[:1]
	}
	for _, m := range cases {
		got, s := operations(t, c, m.op, m.qps, 32*m.thread)
		t.Logf("%v over %d queue pairs: %.1f million a second, published %.0f; %d of %d contexts were not there", m.op, m.qps, got, m.public, s.Misses, s.Hits+s.Misses)
		if !near(got, m.public, 0.1) {
			t.Errorf("%v over %d queue pairs: %.1f million a second, want %.0f within 10 %%", m.op, m.qps, got, m.public)
		}
	}
	// Without a cache there is nothing to miss.
	if got, s := operations(t, Contexts{Gap: c.Gap}, qp.Write, 1024, 192); s != (CacheStats{}) || !near(got, 123, 0.05) {
		t.Errorf("without a cache: %.1f million a second, %+v", got, s)
	}
}

// TestCacheForgets: queue pairs that close leave room, and packets that wait for a
// context of one are dropped in peace.
func TestCacheForgets(t *testing.T) {
	f, err := Pair(Config{Seed: 1, NIC: NICConfig{Contexts: Contexts{Cache: Cache{Entries: 2, Fetches: 1, Miss: des.Microsecond}}}}, Link{Gbps: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		x, y := f.join(t, 0, 1, 64, nil)
		x.write(t, y, 64)
		if i%2 == 0 {
			runTo(t, f, f.k.Now()+10*des.Microsecond)
		} else {
			runTo(t, f, f.k.Now()+700*des.Nanosecond) // the context is on its way
		}
		if err := x.q.Close(); err != nil {
			t.Fatal(err)
		}
		if err := y.q.Close(); err != nil {
			t.Fatal(err)
		}
	}
	runTo(t, f, des.Never)
	for i := range 2 {
		if n := f.Host(i).contexts.n; n != 0 {
			t.Errorf("host %d keeps %d contexts of closed queue pairs", i, n)
		}
	}
}
