package fabric

import (
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// pairsOver connects hosts of different leaves and keeps all pairs busy; it counts
// bytes that arrive.
func pairsOver(t *testing.T, f *Fabric) {
	t.Helper()
	for i := range 4 {
		x, y := f.join(t, i, 4+i, 64<<10, func(p *qp.Path) { p.AckTimeout = 6 })
		x.stream(t, y, 64<<10, 4)
	}
}

func arrived(f *Fabric) (n uint64) {
	for i := 4; i < 8; i++ {
		n += f.Host(i).Stats().BytesReceived
	}
	return n
}

// TestReroute: when a link or a spine dies, its flows lose what is on it, retry, and
// go another way once the switches know; when it comes back, it is used again.
func TestReroute(t *testing.T) {
	for name, cut := range map[string]func(f *Fabric, down bool) error{
		"link":  func(f *Fabric, down bool) error { return f.SetLinkDown(f.Switch(2), f.Switch(0), down) },
		"spine": func(f *Fabric, down bool) error { f.Switch(0).SetDown(down); return nil },
	} {
		f, err := LeafSpine(Config{Seed: 4, SkipWrites: true, Switch: SwitchConfig{PFC: true}}, 8, 4, 2, Link{Gbps: 100, Delay: 300 * des.Nanosecond}, Link{Gbps: 400, Delay: des.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		pairsOver(t, f)
		through := func() (n uint64) {
			for _, p := range f.Switch(0).ports {
				n += p.stats.Frames
			}
			return n
		}
		rate := func(span des.Time) float64 {
			was := arrived(f)
			runTo(t, f, f.k.Now()+span)
			return float64(arrived(f)-was) * 8 / (float64(span) / float64(des.Second)) / 400e9
		}
		if r := rate(des.Millisecond); r < 0.9 || through() == 0 {
			t.Errorf("%s: before, %.2f of the links and %d frames over the spine", name, r, through())
		}
		if err := cut(f, true); err != nil {
			t.Fatal(err)
		}
		lost := rate(50 * des.Microsecond) // until the neighbours know
		runTo(t, f, f.k.Now()+1500*des.Microsecond)
		was := through()
		around := rate(des.Millisecond)
		if through() != was {
			t.Errorf("%s: %d frames over a spine that is down", name, through()-was)
		}
		if err := cut(f, false); err != nil {
			t.Fatal(err)
		}
		runTo(t, f, f.k.Now()+1500*des.Microsecond)
		was = through()
		again := rate(des.Millisecond)
		t.Logf("%s: %.2f of the links while nobody knows, %.2f around it, %.2f again", name, lost, around, again)
		if lost > 0.8 || around < 0.9 || again < 0.9 || through() == was {
			t.Errorf("%s: %.2f of the links while nobody knows, %.2f around it, %.2f again with %d frames over the spine", name, lost, around, again, through()-was)
		}
		for i := range 4 {
			if s := f.Host(i).Stats(); s.QPErrors != 0 {
				t.Errorf("%s: host %d lost a queue pair", name, i)
			}
		}
	}
	f, err := Single(Config{}, 2, Link{Gbps: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetLinkDown(f.Switch(0), f.Switch(0), true); err == nil {
		t.Error("a link that is not there was cut")
	}
}

// TestSlowMemory: a NIC whose memory is slower than the wire holds what it can, then
// pauses its link, and loses nothing; the sender gets the memory's rate.
func TestSlowMemory(t *testing.T) {
	f, err := Single(Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{PFC: true}}, 2, Link{Gbps: 100, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	f.Host(0).SetDMA(10)
	x, y := f.join(t, 1, 0, 1<<20, nil)
	x.stream(t, y, 1<<20, 4)
	got := goodput(t, f, 0, 2*des.Millisecond, 10*des.Millisecond)
	down, p := f.Host(0).Downlink(), f.PortTotals()
	t.Logf("%.2f Gb/s, %d pauses of %v", got, down.PausesReceived, down.Paused.Duration())
	if !near(got, 10*4096./4158, 0.02) || down.PausesReceived == 0 || p.Drops != 0 || f.Host(1).Stats().Retransmits != 0 {
		t.Errorf("%.2f Gb/s, want 9.85; %+v", got, p)
	}
	f.Host(0).SetDMA(0)
	if got := goodput(t, f, 0, 13*des.Millisecond, 2*des.Millisecond); !near(got, 98.03, 0.01) {
		t.Errorf("%.2f Gb/s with fast memory again", got)
	}
}

// TestStuckPause: a NIC that pauses its link for no reason stops who sends to it for
// that long.
func TestStuckPause(t *testing.T) {
	f, err := Single(Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{PFC: true}}, 2, Link{Gbps: 100, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	x, y := f.join(t, 1, 0, 1<<20, func(p *qp.Path) { p.AckTimeout = 10 })
	x.stream(t, y, 1<<20, 4)
	runTo(t, f, des.Millisecond)
	f.Host(0).StickPause(200 * des.Microsecond)
	runTo(t, f, 1010*des.Microsecond)
	was := f.Host(0).Stats().BytesReceived
	runTo(t, f, 1190*des.Microsecond)
	if n := f.Host(0).Stats().BytesReceived - was; n != 0 {
		t.Errorf("%d bytes came over a link that is paused", n)
	}
	if d := f.Host(0).Downlink(); d.PausesReceived != 1 {
		t.Errorf("%+v", d)
	}
	if got := goodput(t, f, 0, 1300*des.Microsecond, des.Millisecond); !near(got, 98.03, 0.01) {
		t.Errorf("%.2f Gb/s afterwards", got)
	}
}

// TestNotificationGap: all queue pairs of a NIC together send a CNP at most once in
// the gap.
func TestNotificationGap(t *testing.T) {
	sent := func(gap des.Time) uint64 {
		f, err := Single(Config{
			Seed: 1, SkipWrites: true, NIC: NICConfig{DCQCN: DCQCN15(), CNPGap: gap},
			Switch: SwitchConfig{ECN: ECN{KminBytes: 1, KmaxBytes: 1, Pmax: 1}, PFC: true},
		}, 33, Link{Gbps: 100, Delay: des.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 32 {
			x, y := f.join(t, i+1, 0, 64<<10, nil)
			x.done = func(cq.Completion) {}
			x.write(t, y, 64<<10)
		}
		runTo(t, f, des.Millisecond)
		n, _ := f.Host(0).Notifications()
		return n
	}
	free, bound := sent(0), sent(5*des.Microsecond)
	t.Logf("%d notifications, %d with a gap of 5 us", free, bound)
	if bound > 201 || bound < 20 || free < 3*bound/2 {
		t.Errorf("%d notifications, %d with a gap of 5 us", free, bound)
	}
}
