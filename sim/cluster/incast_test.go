package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

const (
	senders     = 16
	messageSize = 1 << 20
	egressBytes = 2 << 20
	maxGoodput  = 4096. / (4096 + 82) // of a link, at a path MTU of 4096: the rest is headers and gaps
)

// incast is what came of many senders to one receiver.
type incast struct {
	goodput float64 // share of the receiver's link, of the payload that arrived
	jain    float64 // fairness among the sockets
	down    fabric.PortStats
	stats   core.Stats
	events  uint64
}

// runIncast is runIncastOf messages of 1 MiB.
func runIncast(t testing.TB, n int, cfg Config, span des.Time) incast {
	t.Helper()
	return runIncastOf(t, n, messageSize, cfg, span)
}

// runIncastOf has n senders keep two messages of a size queued each, for the given time,
// over a switch whose egress queue holds 2 MiB.
func runIncastOf(t testing.TB, n, size int, cfg Config, span des.Time) (r incast) {
	t.Helper()
	c := star(t, fabric.Config{
		Seed: 1, SkipWrites: true, Switch: fabric.SwitchConfig{EgressBytes: egressBytes},
	}, cfg, n+1)
	sink := c.Node(0)
	got := make([]float64, n)
	number := map[*core.Socket]int{}
	sink.App.Incoming = func(k *core.Socket, _ string) { number[k] = len(number) }
	var warm, end des.Time
	sink.App.Message = func(k *core.Socket, b []byte) {
		if c.Now() >= warm {
			got[number[k]] += float64(len(b))
		}
	}
	var socks []*core.Socket
	for i := range n {
		socks = append(socks, socket(t, c, i+1, 0))
	}
	start := c.Now()
	warm, end = start+span/5, start+span
	var took []des.Time // of messages, from Send to their end
	for i, k := range socks {
		node := c.Node(i + 1)
		var again func()
		again = func() {
			if at := c.Now(); at < end {
				err := node.SendBytes(k, size, func(err error) {
					if err == nil {
						took = append(took, c.Now()-at)
						again()
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		again()
		again()
	}
	run(t, c, warm)
	arrived := sink.Host().Stats().BytesReceived
	run(t, c, end)
	arrived = sink.Host().Stats().BytesReceived - arrived
	sum, squares := 0.0, 0.0
	for _, b := range got {
		sum += b
		squares += float64(b * b)
	}
	if squares > 0 {
		r.jain = sum * sum / (float64(n) * squares)
	}
	r.goodput = float64(arrived) * 8 / (float64(end-warm) / float64(des.Second)) / float64(cable.Gbps) / 1e9
	r.down, r.stats, r.events = sink.Host().Downlink(), c.Stats(), c.f.Kernel().Events()
	if n := c.f.Counts(); !n.Conserved() {
		t.Errorf("packets: %+v", n)
	}
	slices.Sort(took)
	t.Logf("%d senders of %d bytes, window %d, target %v: P50 %v, P99 %v of messages that ended; peak queue %d bytes, %d drops, goodput %.3f of the link, Jain %.4f, %d credit stalls, %d events",
		n, size, c.cfg.Window, cfg.WindowTarget, took[len(took)/2].Duration(), p99(took).Duration(), r.down.PeakQueueBytes, r.down.Drops, r.goodput, r.jain, r.stats.CreditStalls, r.events)
	return r
}

// TestIncast is case C15: the windows of all senders bound the queue, the link is
// used, and nobody starves. Without a window the queue overflows. Credits have
// nothing to do with either.
func TestIncast(t *testing.T) {
	with := runIncast(t, senders, Config{Window: 64 << 10}, 40*des.Millisecond)
	if with.down.PeakQueueBytes > senders*64<<10 || with.down.Drops != 0 {
		t.Errorf("with windows the queue grows to %d bytes and drops %d frames", with.down.PeakQueueBytes, with.down.Drops)
	}
	if with.goodput < 0.9 {
		t.Errorf("goodput is %.3f of the link, want 0.9", with.goodput)
	}
	if with.jain < 0.95 {
		t.Errorf("Jain's fairness is %.3f, want 0.95", with.jain)
	}
	without := runIncast(t, senders, Config{Window: 1 << 30}, 10*des.Millisecond)
	if without.down.Drops == 0 || without.down.PeakQueueBytes < egressBytes*9/10 {
		t.Errorf("control without windows: %d bytes and %d drops: the test shows nothing", without.down.PeakQueueBytes, without.down.Drops)
	}
	if with.stats.CreditStalls+without.stats.CreditStalls != 0 {
		t.Errorf("credits ran out %d and %d times", with.stats.CreditStalls, without.stats.CreditStalls)
	}
	if with.stats.WindowStalls == 0 || without.stats.WindowStalls != 0 {
		t.Errorf("the window stopped %d and %d times", with.stats.WindowStalls, without.stats.WindowStalls)
	}
}

// TestAlone: one engine with the default window of four fragments fills the link,
// since the window comes back in parts.
func TestAlone(t *testing.T) {
	if r := runIncast(t, 1, Config{}, 20*des.Millisecond); r.goodput < 0.99*maxGoodput {
		t.Errorf("goodput is %.3f of the link", r.goodput)
	}
}

// adaptive is the window that be.Config recommends at 100 Gb/s: a target of the time
// of four fragments.
var adaptive = Config{Window: 1 << 20, WindowTarget: 21 * time.Microsecond}

// TestAdaptiveWindow: at an incast it is as good as the static window of one fragment
// that is right for it, and one engine alone fills the link, which that window does
// not let it.
func TestAdaptiveWindow(t *testing.T) {
	for _, n := range []int{1, 4, senders} {
		a := runIncast(t, n, adaptive, 40*des.Millisecond)
		s := runIncast(t, n, Config{Window: 64 << 10}, 40*des.Millisecond)
		if a.goodput < s.goodput-0.001 || a.jain < 0.95 || a.down.Drops != 0 || a.down.PeakQueueBytes > senders*64<<10 {
			t.Errorf("%d senders: adaptive %.3f of the link, Jain %.3f, %d drops, peak queue %d; static %.3f", n, a.goodput, a.jain, a.down.Drops, a.down.PeakQueueBytes, s.goodput)
		}
		if n == 1 && (a.goodput < 0.95 || s.goodput > 0.6) {
			t.Errorf("alone: adaptive %.3f of the link, static %.3f", a.goodput, s.goodput)
		}
	}
}

// TestAdaptiveWindowOfMany: many senders take turns as few do, also if a round of them
// takes long, as with long messages: nobody is taken for dead, and what all then sent at
// once would not fit the queue.
func TestAdaptiveWindowOfMany(t *testing.T) {
	for _, x := range []struct{ n, size int }{{31, 1 << 20}, {24, 4 << 20}} {
		r := runIncastOf(t, x.n, x.size, adaptive, 40*des.Millisecond)
		if r.down.Drops != 0 || r.down.PeakQueueBytes > x.n*48<<10 || r.goodput < 0.95 {
			t.Errorf("%d senders of %d bytes: %d drops, peak queue %d, %.3f of the link", x.n, x.size, r.down.Drops, r.down.PeakQueueBytes, r.goodput)
		}
	}
}

// TestSameRun: the same seed gives the same trace, whatever Go's scheduler has.
func TestSameRun(t *testing.T) {
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	trace := func(procs int, seed uint64) string {
		runtime.GOMAXPROCS(procs)
		h := sha256.New()
		c := star(t, fabric.Config{Seed: seed, Trace: h, Switch: fabric.SwitchConfig{EgressBytes: 100_000}}, Config{AckTimeout: 6}, 5)
		for i := 1; i < 5; i++ {
			c.Node(i).Host().SetLoss(0.001)
			k := socket(t, c, i, 0)
			for range 3 {
				if err := c.Node(i).SendBytes(k, 1<<20, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		run(t, c, des.Never)
		n := c.f.Counts()
		if n.Dropped == 0 || n.Lost == 0 || c.Node(0).Stats().Received != 12 {
			t.Errorf("%+v, %d messages: want drops, losses and 12", n, c.Node(0).Stats().Received)
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	first := trace(1, 7)
	for _, procs := range []int{1, 2, 8} {
		if again := trace(procs, 7); again != first {
			t.Errorf("with GOMAXPROCS %d the trace is %s, before %s", procs, again, first)
		}
	}
	if trace(1, 8) == first {
		t.Error("another seed gives the same trace")
	}
}

// BenchmarkIncast reports how fast virtual time is: events of one core a second.
func BenchmarkIncast(b *testing.B) {
	events := uint64(0)
	for b.Loop() {
		events += runIncast(b, senders, Config{Window: 64 << 10}, 5*des.Millisecond).events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
