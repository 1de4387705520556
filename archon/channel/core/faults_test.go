package core

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// seeds gives the seeds of a test: 200, or the one of SEED. Under the race detector,
// which has one goroutine to look at, there are 5.
func seeds(t *testing.T) []uint64 {
	if s := os.Getenv("SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{n}
	}
	list := make([]uint64, 200)
	switch {
	case raceEnabled:
		list = list[:5]
	case testing.Short():
		list = list[:20]
	}
	for i := range list {
		list[i] = uint64(i + 1)
	}
	return list
}

// quick settles in a second, so that virtual time is not long.
func quick() Config { return Config{Settle: time.Second} }

// fault is one column of the fault matrix.
type fault struct {
	desc     string
	strike   func(s *server)
	heal     func(s *server) // nil: it stays
	fallback Reason          // calls must have moved to TCP for it
	returns  bool            // and back
}

var faultMatrix = []fault{
	{desc: "replica killed", strike: (*server).kill},
	{desc: "replica hangs", strike: func(s *server) { s.hung = true }},
	{desc: "replica hangs and goes on", strike: func(s *server) { s.hung = true }, heal: func(s *server) { s.hung = false }},
	{desc: "handlers hang, pings are answered", strike: func(s *server) { s.stuck = true }, heal: func(s *server) { s.stuck = false }},
	{desc: "link black-holed", strike: func(s *server) { s.hole = true }, heal: func(s *server) { s.hole = false }},
	{desc: "RDMA dies and heals", strike: (*server).breakRDMA, heal: func(s *server) { s.broken = false }, fallback: RetryExceeded, returns: true},
	{desc: "RDMA dies and its set-up fails at some step", strike: func(s *server) {
		s.setUp = NoDevice + Reason(s.w.rng.IntN(int(TimedOut)))
		s.w.connDies(s.conns[RDMA], QPFailed)
		s.step()
	}, heal: func(s *server) { s.setUp = NoReason }, fallback: QPFailed, returns: true},
	{desc: "killed and restarted", strike: (*server).kill, heal: (*server).start},
	{desc: "restarted at once", strike: func(s *server) { s.kill(); s.w.after(20*time.Millisecond, s.start) }},
}

// strike runs a service of n replicas through a fault of one, and says what is wrong.
func strike(t *testing.T, seed uint64, n int, rate float64, cfg Config, f fault) (wrong []string) {
	w := newWorld(t, seed, n, cfg)
	s := w.servers[w.rng.IntN(n)]
	w.load(rate, 2*time.Second)
	w.take()
	w.load(rate, 2*time.Second)
	steady, _ := w.take()
	w.at(w.now+time.Duration(w.rng.Int64N(int64(time.Second))), func() { f.strike(s) })
	w.load(rate, 4*time.Second)
	during, _ := w.take()
	if f.heal != nil {
		f.heal(s)
	}
	w.load(rate, 6*time.Second)
	after, _ := w.take()
	w.run(w.timeout)
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if w.failed != 0 {
		say("%d of %d calls failed: %v", w.failed, w.calls, w.verdicts)
	}
	if len(w.ops) != 0 {
		say("%d calls without an end", len(w.ops))
	}
	if limit := 3*steady + w.cfg.DetectionBound(); during > limit || after > limit {
		say("p99 %v during the fault and %v after it, steady %v: at most %v", during, after, steady, limit)
	}
	if float64(w.attempts) > 1.2*float64(w.calls) {
		say("%d attempts for %d calls", w.attempts, w.calls)
	}
	st := s.link.Stats()
	if f.fallback != NoReason && (st.Fallbacks[f.fallback] != 1 || sum(st.Fallbacks) != 1) {
		say("fallbacks %v", counted(st.Fallbacks))
	}
	if f.returns && (st.Returns != 1 || s.link.Use() != RDMA) {
		say("%d returns, on %v", st.Returns, s.link.Use())
	}
	if f.heal != nil && !s.replica.Ready() {
		say("the healed replica is not used")
	}
	for _, r := range w.shared.Set.Replicas() {
		if r.Outstanding() != 0 {
			say("replica %d has %d attempts at rest", r.ID, r.Outstanding())
		}
	}
	return wrong
}

func sum(counts [NumReasons]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func counted(counts [NumReasons]uint64) map[string]uint64 {
	m := map[string]uint64{}
	for r, n := range counts {
		if n > 0 {
			m[Reason(r).String()] = n
		}
	}
	return m
}

// TestFaultMatrix: whatever happens to one of three replicas, no call fails, the
// slowest percent waits no longer than it takes to notice, and calls come back.
func TestFaultMatrix(t *testing.T) {
	for _, f := range faultMatrix {
		t.Run(f.desc, func(t *testing.T) {
			for _, seed := range seeds(t) {
				for _, what := range strike(t, seed, 3, 300, quick(), f) {
					t.Errorf("SEED=%d: %s", seed, what)
				}
			}
		})
	}
}

// TestFaultMatrixControl: without the defence against a fault, the matrix shows it.
func TestFaultMatrixControl(t *testing.T) {
	hedgeless := func(c Config) Config {
		c.HedgeQuantile, c.Settle = -1, time.Second
		return c
	}
	for _, tt := range []struct {
		desc string
		f    int
		cfg  Config
	}{
		{"no repetition", 1, hedgeless(Config{MaxAttempts: 1})},
		{"no pings, no time-outs", 1, hedgeless(Config{PingInterval: time.Hour, AttemptTimeout: -1})},
		{"no return to RDMA", 5, Config{Settle: time.Hour}},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			found := 0
			for _, seed := range seeds(t)[:1] {
				found += len(strike(t, seed, 3, 300, tt.cfg, faultMatrix[tt.f]))
			}
			if found == 0 {
				t.Error("nothing wrong was seen")
			}
		})
	}
}

// TestOnlyReplicaRestarts: calls wait for a replica that is not there, and its new
// process is used as soon as it listens.
func TestOnlyReplicaRestarts(t *testing.T) {
	for _, down := range []time.Duration{0, 100 * time.Millisecond, time.Second, 30 * time.Second} {
		for _, seed := range seeds(t)[:min(20, len(seeds(t)))] {
			w := newWorld(t, seed, 1, Config{WaitReady: time.Minute})
			w.timeout = time.Minute
			w.load(200, time.Second)
			s := w.servers[0]
			s.kill()
			w.run(down)
			s.start()
			started := w.now
			w.load(200, 3*time.Second)
			w.run(w.timeout)
			if w.failed != 0 {
				t.Errorf("SEED=%d: down for %v: %d calls failed: %v", seed, down, w.failed, w.verdicts)
			}
			if p := w.cfg.RedialMax + w.cfg.FallbackDelay; s.link.Use() == NoPath || s.known != 2 || w.now-started < p {
				t.Errorf("SEED=%d: down for %v: on %v, incarnation %d", seed, down, s.link.Use(), s.known)
			}
		}
	}
}

// TestSetUpFailsAtEachStep (case C20): calls go over TCP, the cause is counted once,
// and after healing RDMA is used when it has settled, not before.
func TestSetUpFailsAtEachStep(t *testing.T) {
	for reason := NoDevice; reason <= TimedOut; reason++ {
		for _, seed := range seeds(t)[:min(20, len(seeds(t)))] {
			w := newWorld(t, seed+1000*uint64(reason), 1, quick())
			s := w.servers[0]
			s.setUp = reason
			w.load(200, 3*time.Second)
			if s.link.Use() != TCP || s.link.Stats().Fallbacks[reason] != 1 || sum(s.link.Stats().Fallbacks) != 1 {
				t.Fatalf("SEED=%d: %v: on %v, fallbacks %v", seed, reason, s.link.Use(), counted(s.link.Stats().Fallbacks))
			}
			s.setUp = NoReason
			healed := w.now
			for s.link.Use() != RDMA && w.now < healed+time.Minute {
				w.load(200, 10*time.Millisecond)
			}
			if d := w.now - healed; d < w.cfg.Settle || d > 2*w.cfg.Settle {
				t.Errorf("SEED=%d: %v: back on %v after %v, settle time %v", seed, reason, s.link.Use(), d, w.cfg.Settle)
			}
			w.run(w.timeout)
			if w.failed != 0 || sum(s.link.Stats().Fallbacks) != 1 || s.link.Stats().Returns != 1 {
				t.Errorf("SEED=%d: %v: %d calls failed, fallbacks %v", seed, reason, w.failed, counted(s.link.Stats().Fallbacks))
			}
		}
	}
}

// flap breaks and heals RDMA ten times, each for half of the settle time, and gives
// how often calls returned to it.
func flap(t *testing.T, seed uint64, cfg Config) (returns uint64, failed int) {
	w := newWorld(t, seed, 1, cfg)
	s := w.servers[0]
	w.load(200, time.Second)
	for range 10 {
		s.breakRDMA()
		w.load(200, 600*time.Millisecond)
		s.broken = false
		w.load(200, 500*time.Millisecond)
	}
	returns = s.link.Stats().Returns
	w.run(w.timeout)
	return returns, w.failed
}

// TestFlappingLinkStaysOnTCP (case C20), and its control: with a short settle time
// calls go back and forth.
func TestFlappingLinkStaysOnTCP(t *testing.T) {
	for _, seed := range seeds(t)[:min(50, len(seeds(t)))] {
		if returns, failed := flap(t, seed, quick()); returns != 0 || failed != 0 {
			t.Errorf("SEED=%d: %d returns, %d calls failed", seed, returns, failed)
		}
		if returns, _ := flap(t, seed, Config{Settle: time.Millisecond, SettleMax: 2 * time.Millisecond}); returns < 2 {
			t.Errorf("SEED=%d: control: %d returns only", seed, returns)
		}
	}
}

// TestSettleGrowsWithFlaps: RDMA that fails soon after each return is waited for longer
// each time, and after a long life as at first.
func TestSettleGrowsWithFlaps(t *testing.T) {
	w := newWorld(t, 1, 1, quick())
	s := w.servers[0]
	w.load(100, time.Second)
	var waits []time.Duration
	for round := range 5 {
		if round == 4 {
			w.load(100, time.Minute) // it lives
		}
		s.breakRDMA()
		w.load(100, 2*time.Second)
		s.broken = false
		healed := w.now
		for s.link.Use() != RDMA && w.now < healed+time.Hour {
			w.load(100, 50*time.Millisecond)
		}
		waits = append(waits, (w.now-healed)/time.Second)
	}
	want := []time.Duration{1, 2, 4, 8, 1}
	if !slices.Equal(waits, want) {
		t.Errorf("seconds until RDMA was used again: %v, want %v", waits, want)
	}
}
