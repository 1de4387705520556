package fabric

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// goldenTrace is the hash of the trace of a run with everything in it: on every
// machine. It changes with the model only.
const goldenTrace = "b323aa65cc24287593b6bc40fa145f6774c69a148266fa2514a84597dc5fce47"

// tracedRun has 12 hosts of a leaf-spine fabric send to each other over lossy links,
// with marks, notifications and pauses.
func tracedRun(t *testing.T, seed uint64) string {
	h := sha256.New()
	cfg := Config{
		Seed: seed, SkipWrites: true, Trace: h, NIC: NICConfig{DCQCN: DCQCN15()},
		Switch: SwitchConfig{BufferBytes: 2 << 20, PFC: true, ECN: ECN{KminBytes: 20_000, KmaxBytes: 80_000, Pmax: 0.2}},
	}
	f, err := LeafSpine(cfg, 12, 4, 2, Link{Gbps: 100, Delay: 300 * des.Nanosecond}, Link{Gbps: 100, Delay: des.Microsecond, Loss: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for i := range 12 {
		for _, to := range []int{0, (i + 5) % 12} {
			if to == i {
				continue
			}
			x, y := f.join(t, i, to, 500_000, func(p *qp.Path) { p.AckTimeout = 8 })
			x.done = func(c cq.Completion) {
				if c.Status != cq.Success {
					t.Errorf("%v", c.Err())
				}
				done++
			}
			x.write(t, y, 500_000)
		}
	}
	runTo(t, f, des.Never)
	p := f.PortTotals()
	sent, _ := f.Host(0).Notifications()
	if done != 23 || p.Lost == 0 || p.Marked == 0 || p.PausesSent == 0 || sent == 0 || f.Err() != nil {
		t.Errorf("%d of 23 messages, %+v, %d notifications, %v: something did not happen", done, p, sent, f.Err())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestSameTrace: the same seed gives the same trace, on every machine and with any
// number of processors; another seed gives another.
func TestSameTrace(t *testing.T) {
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	for _, procs := range []int{1, 2, 8} {
		runtime.GOMAXPROCS(procs)
		if got := tracedRun(t, 1); got != goldenTrace {
			t.Errorf("GOMAXPROCS %d: the trace is %s, want %s", procs, got, goldenTrace)
		}
	}
	if tracedRun(t, 2) == goldenTrace {
		t.Error("another seed gives the same trace")
	}
}

// refusing is a trace that fails.
type refusing struct{ n int }

func (r *refusing) Write(b []byte) (int, error) {
	r.n++
	return 0, cq.ErrClosed
}

func TestTraceEnds(t *testing.T) {
	w := &refusing{}
	f, err := Pair(Config{Seed: 1, Trace: w}, Link{Gbps: 100})
	if err != nil {
		t.Fatal(err)
	}
	x, y := f.join(t, 0, 1, 10_000, nil)
	x.write(t, y, 10_000)
	runTo(t, f, des.Never)
	if w.n != 1 || f.Err() == nil {
		t.Errorf("%d writes, %v", w.n, f.Err())
	}
}
