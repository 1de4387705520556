package fabric

import (
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// TestFatTree: a fat tree of k ports has k^3/4 hosts and 5k^2/4 switches of k ports
// each, and a way between any two hosts, of one, three or five switches.
func TestFatTree(t *testing.T) {
	for _, k := range []int{2, 4, 6} {
		f, err := FatTree(Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{PFC: true}}, k, Link{Gbps: 100, Delay: des.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		if f.Hosts() != k*k*k/4 || f.Switches() != 5*k*k/4 {
			t.Errorf("k %d: %d hosts and %d switches", k, f.Hosts(), f.Switches())
		}
		for _, s := range f.switches {
			if len(s.ports) != k {
				t.Errorf("k %d: switch %d has %d ports", k, s.id, len(s.ports))
			}
		}
		left, last := 0, f.Hosts()-1
		took := map[int]des.Time{}
		for _, to := range []int{k/2 - 1, k*k/4 - 1, last} { // one edge switch, one pod, another
			if to == 0 || took[to] != 0 {
				continue
			}
			x, y := f.join(t, 0, to, 100, nil)
			left++
			begin := f.k.Now()
			x.done = func(c cq.Completion) {
				left--
				took[to] = f.k.Now() - begin
			}
			x.write(t, y, 100)
			runTo(t, f, f.k.Now()+des.Millisecond)
		}
		if left != 0 || k == 6 && !(took[2] < took[8] && took[8] < took[last]) {
			t.Errorf("k %d: %d messages did not arrive, the others took %v", k, left, took)
		}
	}
	for _, k := range []int{0, 1, 3, -2, 50} {
		if _, err := FatTree(Config{}, k, Link{Gbps: 1}); err == nil {
			t.Errorf("k %d: no error", k)
		}
	}
}

// TestGraph: what cannot be is an error, and what can has the rates of its links.
func TestGraph(t *testing.T) {
	host := Link{Gbps: 40, Delay: des.Microsecond}
	for _, c := range []struct {
		trunks []Trunk
		hosts  []Place
	}{
		{[]Trunk{{0, 2, host}}, nil},
		{[]Trunk{{1, 1, host}}, nil},
		{[]Trunk{{0, 1, Link{}}}, nil},
		{nil, []Place{{-1, host}}},
		{nil, []Place{{0, Link{Gbps: 9000}}}},
	} {
		if _, err := Graph(Config{}, 2, c.trunks, c.hosts); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	f, err := Graph(Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{PFC: true}}, 2, []Trunk{{0, 1, Link{Gbps: 10, Delay: des.Microsecond}}}, []Place{{0, host}, {1, host}})
	if err != nil {
		t.Fatal(err)
	}
	x, y := f.join(t, 0, 1, 1<<20, nil)
	x.stream(t, y, 1<<20, 4)
	if got := goodput(t, f, 1, des.Millisecond, 4*des.Millisecond); !near(got, 10*4096./4178, 0.01) {
		t.Errorf("over a trunk of 10 Gb/s: %.2f Gb/s", got)
	}
}

// TestOddRates: also of a rate of which a byte does not take whole picoseconds a link
// carries what it says.
func TestOddRates(t *testing.T) {
	for _, gbps := range []int{3, 56, 300, 700, 3200} {
		f, err := Pair(Config{Seed: 1, SkipWrites: true}, Link{Gbps: gbps})
		if err != nil {
			t.Fatal(err)
		}
		x, y := f.join(t, 0, 1, 1<<20, nil)
		x.stream(t, y, 1<<20, 64)
		if got := goodput(t, f, 1, 3*des.Millisecond, 5*des.Millisecond); !near(got, float64(gbps)*4096/4178, 0.002) {
			t.Errorf("%d Gb/s: %.3f Gb/s of payload", gbps, got)
		}
	}
}

// TestPauseThresholds holds what ports may have of a buffer to the law of dynamic
// thresholds (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory
// Packet Switches", 1998): n ports with a share a of what is free fill na/(1+na) of it. A
// fixed threshold is held to. What comes until a pause has effect is beyond both.
func TestPauseThresholds(t *testing.T) {
	const ports, buffer = 8, 12 << 20
	nic, link := NICConfig{MTU: qp.MTU1024}, Link{Gbps: 40, Delay: des.Microsecond}
	headroom := Config{NIC: nic}.HeadroomBytes(link, true)
	pool := float64(buffer - (ports+1)*headroom)
	law := func(share float64) float64 { return pool * ports * share / (1 + ports*share) }
	for _, c := range []struct {
		sw   SwitchConfig
		want float64
	}{
		{SwitchConfig{}, law(0.125)}, {SwitchConfig{PauseShare: 1. / 64}, law(1. / 64)}, {SwitchConfig{PauseShare: 1. / 16}, law(1. / 16)},
		{SwitchConfig{PauseShare: 1}, law(1)}, {SwitchConfig{PauseBytes: 100_000}, ports * 100_000},
	} {
		c.sw.PFC, c.sw.BufferBytes = true, buffer
		f, err := Single(Config{Seed: 1, SkipWrites: true, Switch: c.sw, NIC: nic}, ports+1, link)
		if err != nil {
			t.Fatal(err)
		}
		for i := range ports {
			x, y := f.join(t, i+1, 0, 1<<20, nil)
			x.stream(t, y, 1<<20, 4)
		}
		runTo(t, f, 3*des.Millisecond)
		p, held := f.PortTotals(), float64(f.Switch(0).PeakBytes())
		t.Logf("share %g, fixed %d: the switch holds %.0f bytes, the law says %.0f; %d pauses", c.sw.PauseShare, c.sw.PauseBytes, held, c.want, p.PausesSent)
		if p.Drops != 0 || p.PausesSent == 0 || held < c.want || held > c.want+ports*float64(headroom) {
			t.Errorf("%+v: it holds %.0f bytes, want %.0f to %.0f; %d drops, %d pauses", c.sw, held, c.want, c.want+ports*float64(headroom), p.Drops, p.PausesSent)
		}
	}
}
