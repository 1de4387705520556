package fabric

import (
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// burst has n hosts send a WRITE of size bytes each to host 0 at once, with
// nothing that holds them back, and runs until all arrived.
func burst(t testing.TB, cfg Config, n, size int) *Fabric {
	t.Helper()
	f, err := Single(cfg, n+1, Link{Gbps: 100, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for i := range n {
		x, y := f.join(t, i+1, 0, size, func(p *qp.Path) { p.AckTimeout = 12 }) // 17 ms: all of it takes 9
		x.done = func(c cq.Completion) {
			if c.Status != cq.Success {
				t.Errorf("host %d: %v", i+1, c.Err())
			}
			done++
		}
		x.write(t, y, size)
	}
	for range 1000 { // looks at the accounts in between
		if f.k.Pending() > 0 {
			runTo(t, f, f.k.Now()+2*des.Microsecond)
		}
	}
	runTo(t, f, des.Never)
	if done != n {
		t.Fatalf("%d of %d messages arrived", done, n)
	}
	for _, s := range f.switches {
		if s.HeldBytes() != 0 {
			t.Errorf("the switch holds %d bytes at the end", s.HeldBytes())
		}
		for _, p := range s.ports {
			if p.xoff || p.peer.paused {
				t.Errorf("port %d is paused at the end", p.id)
			}
		}
	}
	return f
}

// TestPausesPreventDrops: 100 hosts send to one at line rate. With PFC nothing is
// dropped, as the headroom takes what is on its way; without, frames are dropped.
func TestPausesPreventDrops(t *testing.T) {
	sw := SwitchConfig{BufferBytes: 16 << 20, PFC: true}
	f := burst(t, Config{Seed: 1, SkipWrites: true, Switch: sw}, 100, 1<<20)
	with := f.PortTotals()
	if with.Drops != 0 || with.PausesSent == 0 || with.PausesSent != with.PausesReceived || with.Paused == 0 {
		t.Errorf("with PFC: %+v", with)
	}
	if n := f.hosts[1].Stats().Retransmits; n != 0 {
		t.Errorf("with PFC, %d packets were sent again", n)
	}
	sw.PFC = false
	without := burst(t, Config{Seed: 1, SkipWrites: true, Switch: sw}, 100, 1<<20).PortTotals()
	if without.Drops == 0 || without.PausesSent != 0 {
		t.Errorf("without PFC: %+v", without)
	}
	t.Logf("with PFC %d pauses of %v in all, peak %d of %d bytes; without %d drops", with.PausesSent, with.Paused.Duration(), f.Switch(0).PeakBytes(), sw.BufferBytes, without.Drops)
}

// TestHeadroomIsNeeded is the control: with less, frames are dropped.
func TestHeadroomIsNeeded(t *testing.T) {
	f, err := Single(Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{BufferBytes: 2 << 20, PFC: true}}, 17, Link{Gbps: 100, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.switches[0].ports {
		p.headroom /= 4
	}
	for i := range 16 {
		x, y := f.join(t, i+1, 0, 1<<20, func(p *qp.Path) { p.AckTimeout = 8 })
		x.write(t, y, 1<<20)
	}
	runTo(t, f, des.Never)
	if f.PortTotals().Drops == 0 {
		t.Error("a quarter of the headroom is enough: the tests show nothing")
	}
}

// TestEgressLimit: a queue holds what it may, and no more.
func TestEgressLimit(t *testing.T) {
	f := burst(t, Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{EgressBytes: 200_000}}, 8, 1<<20)
	d := f.Host(0).Downlink()
	if d.Drops == 0 || d.PeakQueueBytes > 200_000 || d.PeakQueueBytes < 190_000 {
		t.Errorf("%+v", d)
	}
}

// TestMarks: never below Kmin, always above Kmax, and in between by chance.
func TestMarks(t *testing.T) {
	shares := func(n int) (marked, frames uint64) {
		f := burst(t, Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{ECN: ECN{KminBytes: 100_000, KmaxBytes: 400_000, Pmax: 0.2}}}, n, 50_000)
		d := f.Host(0).Downlink()
		return d.Marked, d.Frames
	}
	if m, n := shares(2); m != 0 {
		t.Errorf("%d of %d frames are marked with a short queue", m, n)
	}
	if m, n := shares(6); m == 0 || m > n/8 {
		t.Errorf("%d of %d frames are marked with a queue between the thresholds", m, n)
	}
	if m, n := shares(30); m < n/2 {
		t.Errorf("%d of %d frames are marked with a long queue", m, n)
	}
}

// TestWays: on a leaf-spine fabric flows spread over the spines, each stays on its
// own, and everything arrives.
func TestWays(t *testing.T) {
	f, err := LeafSpine(Config{Seed: 2, SkipWrites: true, Switch: SwitchConfig{PFC: true}}, 32, 8, 4, Link{Gbps: 100, Delay: 300 * des.Nanosecond}, Link{Gbps: 400, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for i := range 32 {
		for _, d := range []int{1, 9, 17} {
			x, y := f.join(t, i, (i+d)%32, 100_000, nil)
			x.done = func(c cq.Completion) { done++ }
			x.write(t, y, 100_000)
		}
	}
	runTo(t, f, des.Never)
	if done != 96 {
		t.Fatalf("%d of 96 messages arrived", done)
	}
	if n := f.PortTotals(); n.Drops != 0 {
		t.Errorf("%+v", n)
	}
	for _, s := range f.switches[:4] {
		bytes := uint64(0)
		for _, p := range s.ports {
			bytes += p.stats.Bytes
		}
		t.Logf("spine %d carried %d bytes", s.id, bytes)
		if bytes < 500_000 {
			t.Errorf("spine %d carried %d bytes of 68 flows' 6.8 million", s.id, bytes)
		}
	}
	for i := range 32 {
		if s := f.Host(i).Stats(); s.SeqNaksSent != 0 {
			t.Errorf("host %d saw a flow out of order", i)
		}
	}
}
