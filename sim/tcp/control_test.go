package tcp

import (
	"math"
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// TestDCTCPQueue holds the queue of long DCTCP flows to the model of its paper
// (Alizadeh et al., "Data Center TCP", SIGCOMM 2010, section 3.3), without the costs
// of hosts: the queue is at most K + N packets, and swings by sqrt(2N(C RTT + K))/2.
func TestDCTCPQueue(t *testing.T) {
	const packet = 1460 + headerBytes
	for _, c := range []struct{ flows, k int }{{2, 40}, {10, 40}, {20, 40}, {40, 40}} {
		cfg := Config{Control: DCTCP, MinRTO: 5 * des.Millisecond, TSOBytes: 1, GROBytes: 1, AckSegments: 1, Costs: &free}
		mark := fabric.ECN{KminBytes: c.k * packet, KmaxBytes: c.k * packet, Pmax: 1}
		n := star(t, fabric.Config{Seed: 1, Switch: fabric.SwitchConfig{LossyECN: mark}}, cfg, c.flows+1, fabric.Link{Gbps: 10, Delay: 24 * des.Microsecond})
		for i := range c.flows {
			a, _ := n.Dial(i+1, 0)
			stream(a, 4<<20)
		}
		runTo(t, n, 50*des.Millisecond)
		// The highs and lows of windows of a few swings.
		var high, low, swing []float64
		for range 20 {
			most, least := 0.0, math.Inf(1)
			for range 2000 {
				runTo(t, n, n.k.Now()+des.Microsecond)
				q := float64(n.f.Host(0).DownlinkDatagrams()) / packet
				most, least = max(most, q), min(least, q)
			}
			high, low, swing = append(high, most), append(low, least), append(swing, most-least)
		}
		rtt := float64(4*24*des.Microsecond+2*fabric.DefaultRxLatency) + 500e3
		inFlight := rtt / float64((packet+20)*800)
		wantHigh, wantSwing := float64(c.k+c.flows), math.Sqrt(2*float64(c.flows)*(inFlight+float64(c.k)))/2
		t.Logf("%d flows, K %d, C RTT %.0f: queue %.1f to %.1f packets, swing %.1f; the model says up to %.0f, swing %.1f", c.flows, c.k, inFlight, mean(low), mean(high), mean(swing), wantHigh, wantSwing)
		if h := mean(high); h < wantHigh*0.8 || h > wantHigh*1.2 {
			t.Errorf("%d flows: the queue grows to %.1f packets, want %.0f within 20 %%", c.flows, h, wantHigh)
		}
		if s := mean(swing); s < wantSwing*0.8 || s > wantSwing*1.2 {
			t.Errorf("%d flows: the queue swings by %.1f packets, want %.1f within 20 %%", c.flows, s, wantSwing)
		}
	}
}

func mean(l []float64) float64 {
	sum := 0.0
	for _, x := range l {
		sum += x
	}
	return sum / float64(len(l))
}

// TestCubicCurve holds the window's growth after a loss to the function of RFC 9438:
// C (t - K)^3 + Wmax.
func TestCubicCurve(t *testing.T) {
	const mss, rtt = 1000, 100 * des.Millisecond // so long that Reno is slower
	u := cubic{}
	cwnd := u.reduce(1000 * mss)
	if cwnd != 700*mss {
		t.Fatalf("after a loss the window is %d, want 0.7", cwnd)
	}
	k := math.Cbrt(1000 * 0.3 / 0.4)
	rest := 0
	for now := des.Second; now < 20*des.Second; now += rtt {
		for range 100 { // the acknowledgements of a round trip
			rest += u.growth(now, rtt, cwnd, cwnd/100, mss)
			cwnd += rest / cwnd
			rest %= cwnd
		}
		at := float64(now-des.Second+2*rtt) / float64(des.Second) // it aims a round trip ahead
		want := 1000 + 0.4*math.Pow(at-k, 3)
		if got := float64(cwnd) / mss; math.Abs(got-want) > 0.03*want {
			t.Errorf("after %v the window is %.0f segments, want %.0f", (now - des.Second).Duration(), got, want)
		}
	}
	for _, x := range []int64{0, 1, 7, 8, 26, 27, 1e18, math.MaxInt64} {
		if r := cubeRoot(x); r*r*r > x || r < 2_097_151 && (r+1)*(r+1)*(r+1) <= x {
			t.Errorf("the cube root of %d is %d", x, r)
		}
	}
}

// TestSawtooth: a flow alone halves its window at a loss with Reno and takes 0.7 of
// it with Cubic, and the link stays in use.
func TestSawtooth(t *testing.T) {
	for _, control := range []Control{Reno, Cubic} {
		cfg := Config{Control: control, Costs: &free, TSOBytes: 1, SendBuffer: 64 << 20, RecvBuffer: 64 << 20}
		f := fabric.New(fabric.Config{Seed: 1, Switch: fabric.SwitchConfig{EgressBytes: 400_000}})
		a, b, s := f.AddHost(), f.AddHost(), f.AddSwitch()
		for _, l := range []struct {
			h    *fabric.Host
			gbps int
		}{{a, 40}, {b, 10}} {
			if err := f.LinkHost(l.h, s, fabric.Link{Gbps: l.gbps, Delay: 20 * des.Microsecond}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Build(); err != nil {
			t.Fatal(err)
		}
		n, err := New(f, cfg)
		if err != nil {
			t.Fatal(err)
		}
		from, to := n.Dial(0, 1)
		stream(from, 4<<20)
		runTo(t, n, 20*des.Millisecond)
		before := to.received
		runTo(t, n, 120*des.Millisecond)
		share := float64(to.received-before) * 8 / 0.1 / 10e9 * (1518 + 20) / 1460
		st := n.Stats()
		t.Logf("%v: %.3f of the link, %+v", control, share, st)
		if share < 0.97 || st.Recoveries == 0 || st.Timeouts != 0 {
			t.Errorf("%v: %.3f of the link, %+v", control, share, st)
		}
	}
}
