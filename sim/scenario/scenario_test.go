package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
)

// runAll carries all jobs out.
func runAll(t testing.TB, s *Scenario) (runs []*Run) {
	t.Helper()
	for _, j := range s.Jobs() {
		r, err := j.Run(nil)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
		for _, c := range r.Classes {
			t.Logf("%s, %s: %d, mean %d ns, P50 %d, P99 %d, max %d, %d unfinished; %d Mb/s, %d pauses, queue %d, %d drops, %d events",
				j.Label(), c.Name, c.Count, c.MeanNS, c.P50NS, c.P99NS, c.MaxNS, c.Unfinished, r.GoodputMbps, r.Counter("pauses"),
				r.Counter("peak_queue_bytes"), r.Counter("dropped_packets"), r.Events)
		}
	}
	return runs
}

func load(t testing.TB, name string) *Scenario {
	t.Helper()
	s, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSameBytes: a scenario and a seed give the same result to the byte, whatever Go's
// scheduler has, and another seed another.
func TestSameBytes(t *testing.T) {
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	digest := func(procs int, seed uint64, names ...string) string {
		runtime.GOMAXPROCS(procs)
		h := sha256.New()
		for _, name := range names {
			s := small(t, name)
			s.Seed = seed
			for _, j := range s.Jobs() {
				r, err := j.Run(nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.NewEncoder(h).Encode(r); err != nil {
					t.Fatal(err)
				}
			}
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	first := digest(1, 7, Names()...)
	t.Logf("SHA-256 of the results: %s", first)
	if again := digest(2, 7, Names()...); again != first {
		t.Errorf("with GOMAXPROCS 2 the digest is %s, with 1 %s", again, first)
	}
	if digest(2, 8, "incast") == digest(2, 7, "incast") {
		t.Error("another seed gives the same result")
	}
}

// small is a scenario made small enough for an ordinary test.
func small(t testing.TB, name string) *Scenario {
	t.Helper()
	s := load(t, name)
	if s.Topology.Hosts > 12 {
		if err := s.Scale(12); err != nil {
			t.Fatal(err)
		}
	}
	if s.Sweep != nil {
		s.Sweep.Values = s.Sweep.Values[:min(len(s.Sweep.Values), 3)]
	}
	if err := s.SetDuration(s.Duration.time() / 10); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLongRuns: rates and means are right where their products and sums have more than 64
// bits.
func TestLongRuns(t *testing.T) {
	if got := mbps(12_500_000_000_000, 1000*des.Second); got != 100_000 {
		t.Errorf("12.5 TB in 1000 s are %d Mb/s, want 100000", got)
	}
	c := tally{times: slices.Repeat([]des.Time{300 * des.Second, 500 * des.Second}, 50_000)}
	if got := c.class().MeanNS; got != int64(400*des.Second/des.Nanosecond) {
		t.Errorf("the mean of 300 and 500 s is %d ns", got)
	}
}

// TestIncast: without a window the senders of an incast fill the switch until it
// pauses them; with one there is no pause, the queue is what the windows leave, and
// the slowest messages are faster. READs by the receiver do no worse.
func TestIncast(t *testing.T) {
	runs := map[string]*Run{}
	for _, r := range runAll(t, load(t, "incast")) {
		runs[r.Variant] = r
		lossy := strings.HasPrefix(r.Variant, "tcp-")
		if c := r.Class("message"); c.Unfinished > 0 || c.Count < 1000 || r.Counter("dropped_packets") > 0 && !lossy {
			t.Errorf("%s: %d messages, %d unfinished, %d packets dropped", r.Variant, c.Count, c.Unfinished, r.Counter("dropped_packets"))
		}
	}
	for _, mode := range []string{"", "get-"} {
		off := runs[mode+"dcqcn"]
		if off.Counter("pauses") == 0 {
			t.Errorf("%sdcqcn: no pause: the test shows nothing", mode)
		}
		for _, name := range []string{"static", "adaptive"} {
			on := runs[mode+name]
			if n := on.Counter("pauses"); n != 0 {
				t.Errorf("%s%s: %d pauses", mode, name, n)
			}
			if on.Class("message").P99NS > off.Class("message").P99NS || on.GoodputMbps < off.GoodputMbps*99/100 {
				t.Errorf("%s%s: P99 %d ns and %d Mb/s, without a window %d and %d", mode, name,
					on.Class("message").P99NS, on.GoodputMbps, off.Class("message").P99NS, off.GoodputMbps)
			}
		}
	}
}
