package core

import (
	"math"
	"slices"
	"testing"
	"time"
)

// storm has one of three replicas fail every call with the outcome, and gives the
// attempts a call and the calls that failed.
func storm(t *testing.T, seed uint64, cfg Config, out Outcome, rate float64, d time.Duration) (w *world, ratio float64) {
	w = newWorld(t, seed, 3, cfg)
	w.run(time.Second) // connections come up
	w.servers[1].failing = out
	w.load(rate, d)
	w.run(w.timeout)
	return w, float64(w.attempts) / float64(w.calls)
}

// TestRetriesAreNoStorm: with one of three replicas failing every call, attempts stay
// within 1.2 of the calls, and no call fails for it.
func TestRetriesAreNoStorm(t *testing.T) {
	for _, out := range []Outcome{Failed, Refused} {
		for _, rate := range []float64{50, 1000} {
			for _, seed := range seeds(t)[:min(50, len(seeds(t)))] {
				w, ratio := storm(t, seed, quick(), out, rate, 4*time.Second)
				if ratio > 1.2 || w.failed > 0 {
					t.Errorf("SEED=%d: outcome %d at %v calls/s: %d attempts for %d calls, %d failed: %v", seed, out, rate, w.attempts, w.calls, w.failed, w.verdicts)
				}
			}
		}
	}
}

// outage has every replica fail every call.
func outage(t *testing.T, seed uint64, cfg Config) *world {
	w := newWorld(t, seed, 3, cfg)
	w.run(time.Second)
	for _, s := range w.servers {
		s.failing = Failed
	}
	w.load(1000, 3*time.Second)
	w.run(w.timeout)
	return w
}

// TestTotalOutage: when every replica fails every call, the load on them grows by the
// budget only, and calls fail in about the time of their back-off. Without the budget,
// the control, the load is a multiple.
func TestTotalOutage(t *testing.T) {
	for _, seed := range seeds(t)[:min(20, len(seeds(t)))] {
		w := outage(t, seed, quick())
		p99, _ := w.take()
		if ratio := float64(w.attempts) / float64(w.calls); ratio > 1.2 || p99 > time.Second || w.failed != w.calls {
			t.Errorf("SEED=%d: %.3f attempts a call, p99 %v, %d of %d failed", seed, ratio, p99, w.failed, w.calls)
		}
	}
	w := outage(t, 1, Config{RetryRatio: 10, RetryBurst: 1_000_000})
	if ratio := float64(w.attempts) / float64(w.calls); ratio < 4 {
		t.Errorf("control: %.3f attempts a call", ratio)
	}
}

// TestBudgetAlone: attempts are few where nobody is ejected, too. Selection sees to most of
// it; what the budget does, TestTotalOutage shows.
func TestBudgetAlone(t *testing.T) {
	if _, ratio := storm(t, 1, Config{EjectShare: -1, HedgeQuantile: -1}, Failed, 1000, 4*time.Second); ratio > 1.2 {
		t.Errorf("%.3f attempts a call", ratio)
	}
}

// TestUnrepeatableCallsAreSentOnce: unless they were refused.
func TestUnrepeatableCallsAreSentOnce(t *testing.T) {
	for out, want := range map[Outcome]Verdict{Failed: NotRepeatable, Lost: NotRepeatable} {
		w := newWorld(t, 1, 3, quick())
		w.repeatable = false
		w.run(time.Second)
		w.servers[1].failing = out
		w.load(1000, time.Second)
		w.run(w.timeout)
		if w.attempts != w.calls || w.failed == 0 || w.verdicts[want] != w.failed {
			t.Errorf("outcome %d: %d attempts for %d calls, %v", out, w.attempts, w.calls, w.verdicts)
		}
	}
	w := newWorld(t, 1, 3, quick())
	w.repeatable = false
	w.run(time.Second)
	w.servers[1].failing = Refused
	w.load(1000, time.Second)
	w.run(w.timeout)
	if w.attempts == w.calls || w.failed > 0 {
		t.Errorf("refused: %d attempts for %d calls, %d failed", w.attempts, w.calls, w.failed)
	}
}

// TestEjectedReplicaReturns: a replica that fails is left alone but for probes, ever
// fewer, and takes its share when it is well.
func TestEjectedReplicaReturns(t *testing.T) {
	some := seeds(t)
	for _, seed := range append(some[:min(20, len(some))], 32676) { // whose last probes fail shortly before the replica is well
		w := newWorld(t, seed, 3, quick())
		w.run(time.Second)
		s := w.servers[1]
		s.failing = Failed
		w.load(1000, time.Second)
		s.served = 0
		w.load(1000, 8*time.Second)
		if !s.replica.Ejected() || s.served > 10 {
			t.Errorf("SEED=%d: ejected %v, %d attempts in 8 s", seed, s.replica.Ejected(), s.served)
		}
		s.failing = Answered
		w.load(1000, 20*time.Second)
		s.served = 0
		w.load(1000, time.Second)
		if s.replica.Ejected() || s.served < 200 {
			t.Errorf("SEED=%d: well again: ejected %v, %d of 1000 calls", seed, s.replica.Ejected(), s.served)
		}
	}
}

// TestEjectedShareIsBounded: of four failing replicas two stay in.
func TestEjectedShareIsBounded(t *testing.T) {
	w := newWorld(t, 1, 4, quick())
	w.run(time.Second)
	for _, s := range w.servers {
		s.failing = Failed
	}
	w.load(2000, time.Second)
	out := 0
	for _, s := range w.servers {
		if s.replica.Ejected() {
			out++
		}
	}
	if out != 2 {
		t.Errorf("%d of 4 ejected, want 2", out)
	}
}

// TestSlowReplicaGetsLess: two drawn, the better taken, keeps load off a slow one.
func TestSlowReplicaGetsLess(t *testing.T) {
	w := newWorld(t, 1, 5, Config{HedgeQuantile: -1, EjectShare: -1})
	w.run(time.Second)
	w.servers[2].slow = 10
	w.load(2000, 10*time.Second)
	total := 0
	for _, s := range w.servers {
		total += s.served
	}
	if share := float64(w.servers[2].served) / float64(total); share > 0.06 || share == 0 {
		t.Errorf("the slow one of five has %.3f of the calls", share)
	}
}

// TestHedgesLeaveHalf: hedges use up half of what was saved, the rest is for retries.
func TestHedgesLeaveHalf(t *testing.T) {
	b := NewBudget(&Config{RetryRatio: 0.1, RetryBurst: 10})
	hedges, retries := 0, 0
	for b.Hedge() {
		hedges++
	}
	for b.Retry() {
		retries++
	}
	if hedges != 5 || retries != 5 || b.Denied() != 2 {
		t.Errorf("%d hedges and %d retries of 10, %d denied", hedges, retries, b.Denied())
	}
}

// TestHedgesCutTheTail: and cost no more than their budget. The control has none.
func TestHedgesCutTheTail(t *testing.T) {
	measure := func(q float64) (p99 time.Duration, extra float64) {
		w := newWorld(t, 7, 3, Config{HedgeQuantile: q})
		w.run(time.Second)
		for range 100 { // now and then one is slow for a moment
			s := w.servers[w.rng.IntN(3)]
			w.load(500, 90*time.Millisecond)
			s.slow = 50
			w.load(500, 10*time.Millisecond)
			s.slow = 0
		}
		w.run(w.timeout)
		p99, _ = w.take()
		return p99, float64(w.attempts-w.calls) / float64(w.calls)
	}
	with, extra := measure(0)
	without, none := measure(-1)
	t.Logf("p99 %v with %.3f hedges a call, %v without", with, extra, without)
	if with*2 > without || extra > 0.11 || none > 0.01 {
		t.Error("hedges do not help, or cost too much")
	}
}

// TestSeedReplays: the same seed gives the same run.
func TestSeedReplays(t *testing.T) {
	run := func() []time.Duration {
		w := newWorld(t, 42, 3, quick())
		w.load(500, time.Second)
		w.servers[0].kill()
		w.servers[1].hung = true
		w.load(500, 3*time.Second)
		return w.latencies
	}
	a, b := run(), run()
	if len(a) < 1000 || !slices.Equal(a, b) {
		t.Errorf("two runs of one seed differ: %d and %d calls", len(a), len(b))
	}
}

// TestLatencyQuantile compares the estimate with the truth.
func TestLatencyQuantile(t *testing.T) {
	w := newWorld(t, 3, 1, Config{})
	var l Latency
	var all []time.Duration
	for range 4000 {
		d := time.Duration(math.Exp(w.rng.NormFloat64()) * 1e6)
		all = append(all, d)
		l.Add(d, 0.95)
	}
	slices.Sort(all)
	want := all[len(all)*95/100]
	if got := l.Quantile(); got < want*9/10 || got > want*12/10 {
		t.Errorf("quantile %v, want %v", got, want)
	}
	for d := time.Duration(1); d > 0 && d < 1<<62; d = d*9/8 + 1 {
		b := latencyBucket(d)
		if up := latencyUpper(b); up < d || b > 0 && latencyUpper(b-1) > d || b >= latencyBuckets {
			t.Fatalf("%d ns: bucket %d ends at %d", d, b, up)
		}
	}
	latencyBucket(1<<63 - 1)
}
