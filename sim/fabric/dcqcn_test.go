package fabric

import (
	"math"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// TestAlpha holds the congestion estimate to its recursions, exactly, and to their closed
// forms as near as 20 bits come: without CNPs it decays by (1-g) each timer, with them it
// grows by g of what is missing to 1.
func TestAlpha(t *testing.T) {
	c := DCQCN15()
	c.Rai, c.IncreaseBytes = 0, 0
	c.IncreaseTimer = des.Never / 2
	var r reaction
	r.notified(&c, 0, 40e9)
	if r.alpha != alphaOne || r.current != 20e9 || r.target != 40e9 {
		t.Fatalf("after the first notification: %+v", r)
	}
	for _, n := range []int{1, 10, 100, 500} {
		s := r
		s.advance(&c, c.AlphaTimer*des.Time(n))
		want := math.Pow(1-1./256, float64(n))
		exact := int32(alphaOne)
		for range n {
			exact -= exact / 256
		}
		if got := float64(s.alpha) / alphaOne; s.alpha != exact || math.Abs(got-want) > 256./alphaOne {
			t.Errorf("after %d timers alpha is %v, want %v, in 2^-20 %d", n, got, want, exact)
		}
	}
	// Grows by g (1 - alpha) with each notification.
	s := r
	s.alpha = 0
	exact := int32(0)
	for n := 1; n <= 50; n++ {
		s.notified(&c, des.Time(n), 40e9)
		want := 1 - math.Pow(1-1./256, float64(n))
		exact += (alphaOne - exact) / 256
		if got := float64(s.alpha) / alphaOne; s.alpha != exact || math.Abs(got-want) > 256./alphaOne {
			t.Errorf("after %d notifications alpha is %v, want %v", n, got, want)
		}
	}
}

// TestStages follows the increase by hand: five steps of fast recovery, then Rai a
// step of the timer, and Rhai once both counters are beyond five.
func TestStages(t *testing.T) {
	c := DCQCN15()
	var r reaction
	r.notified(&c, 0, 100e9)
	current, target := int64(50e9), int64(100e9)
	check := func(what string, step int) {
		t.Helper()
		if r.current != current || r.target != target {
			t.Errorf("%s, step %d: %d of target %d, want %d of %d", what, step, r.current, r.target, current, target)
		}
	}
	r.target, target = 60e9, 60e9
	for i := 1; i <= 5; i++ {
		r.advance(&c, c.IncreaseTimer*des.Time(i))
		current = (current + target) / 2
		check("fast recovery", i)
	}
	for i := 6; i <= 10; i++ {
		r.advance(&c, c.IncreaseTimer*des.Time(i))
		target += c.Rai
		current = (current + target) / 2
		check("additive", i)
	}
	for i := 1; i <= 9; i++ {
		r.sent(&c, c.IncreaseBytes)
		if i > c.FastSteps {
			target += c.Rhai * int64(i-c.FastSteps)
		} else {
			target += c.Rai
		}
		current = (current + target) / 2
		check("by bytes", i)
	}
	// A notification lowers the rate and starts the counters anew.
	alpha := int64(r.alpha)
	r.notified(&c, c.IncreaseTimer*10, 100e9)
	target, current = current, current-current*alpha>>21
	check("notified", 0)
	if r.steps != [2]int32{} || r.bytes != 0 {
		t.Errorf("%+v", r)
	}
	// At line rate the limit goes.
	r.current, r.target = r.line-1, r.line
	r.increase(&c, 0)
	if r.active || r.gap(1000) != 0 {
		t.Errorf("limited at line rate: %+v", r)
	}
}

// TestSlope: additive increase of one flow, from 5 to 20 Gb/s on 40, is Rai/T, 0.727
// Gb/s a millisecond (within 3 %).
func TestSlope(t *testing.T) {
	c := DCQCN15()
	var r reaction
	r.notified(&c, 0, 40e9)
	r.current, r.target, r.steps = 1e9, 1e9, [2]int32{int32(c.FastSteps), 0}
	var from, to des.Time
	for now := des.Time(0); to == 0; now += r.gap(1106) {
		r.advance(&c, now)
		r.sent(&c, 1106)
		if from == 0 && r.current >= 5e9 {
			from = now
		}
		if r.current >= 20e9 {
			to = now
		}
	}
	got := 15 / (float64(to-from) / float64(des.Millisecond))
	t.Logf("%.4f Gb/s a millisecond", got)
	if !near(got, 0.7273, 0.03) {
		t.Errorf("the rate grows by %.4f Gb/s a millisecond, want 0.727", got)
	}
}

// longFlows makes n flows from hosts of their own to host 0 with DCQCN, flow i from
// i*apart on, of messages of so many bytes.
func longFlows(t testing.TB, n, gbps, size int, ecn ECN, apart des.Time) *Fabric {
	t.Helper()
	f, err := Single(Config{
		Seed: 1, SkipWrites: true, NIC: NICConfig{MTU: qp.MTU1024, DCQCN: DCQCN15()},
		Switch: SwitchConfig{ECN: ecn, PFC: true},
	}, n+1, Link{Gbps: gbps, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		x, y := f.join(t, i+1, 0, size, nil)
		kind := f.k.Handle(func(int32, int32) { x.stream(t, y, size, min(max(4<<20/size, 4), 500)) })
		f.k.At(des.Time(i)*apart, kind, 0, 0)
	}
	return f
}

// meanQueue samples the queue to host 0 from a time on.
func meanQueue(t testing.TB, f *Fabric, from, to des.Time) float64 {
	t.Helper()
	runTo(t, f, from)
	sum, n := 0.0, 0
	for now := from; now < to; now += 10 * des.Microsecond {
		if err := f.k.Run(now); err != nil {
			t.Fatal(err)
		}
		sum += float64(f.hosts[0].port.peer.queue[data].bytes)
		n++
	}
	return sum / float64(n)
}

// fixedPoint is the queue in bytes at which n flows rest, by the fluid model of Zhu
// et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT
// 2016; 0 if the marking probability that it takes is above Pmax.
func fixedPoint(n, gbps, packet int, e ECN) float64 {
	d := DCQCN15()
	c := float64(gbps) * 1e9 / 8 / float64(packet)
	rai := float64(d.Rai) / 8 / float64(packet)
	timer := float64(d.IncreaseTimer) / float64(des.Second)
	tau := float64(d.AlphaTimer) / float64(des.Second)
	b := float64(d.IncreaseBytes) / float64(packet)
	step := 1/b + float64(n)/(timer*c)
	p := math.Cbrt(rai * float64(n*n) / (tau * c * c) * step * step)
	if p > e.Pmax {
		return 0
	}
	return float64(e.KminBytes) + p/e.Pmax*float64(e.KmaxBytes-e.KminBytes)
}

// TestFixedPoint holds the mean queue of long flows to the fluid model, within 20 %: at 40
// Gb/s with packets of 1000 bytes, as its figures are published, else with those of an MTU
// of 1024.
func TestFixedPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("some 10 million events: not with -short")
	}
	published := map[int]float64{2: 23.0, 4: 50.2, 8: 118.7} // KB, by flows
	for n, kb := range published {
		if got := fixedPoint(n, 40, 1000, ECN15()) / 1000; !near(got, kb, 0.005) {
			t.Errorf("the formula gives %.1f KB for %d flows, published %.1f", got, n, kb)
		}
	}
	const alone = 1000 - 98 // payload of a WRITE in a packet of its own, of 1000 bytes on the wire
	cases := []struct{ n, gbps, size, packet int }{
		{2, 25, 1 << 20, 1106}, {2, 40, alone, 1000}, {4, 40, alone, 1000}, {8, 40, alone, 1000}, {16, 40, alone, 1000},
		{4, 25, 1 << 20, 1106}, {4, 100, 1 << 20, 1106},
	}
	if raceEnabled {
		cases = cases[:1]
	}
	for _, c := range cases {
		f := longFlows(t, c.n, c.gbps, c.size, ECN15(), 0)
		got := meanQueue(t, f, 60*des.Millisecond, 100*des.Millisecond)
		want := fixedPoint(c.n, c.gbps, c.packet, ECN15())
		t.Logf("%d flows at %d Gb/s: mean queue %.1f KB, fluid model %.1f KB", c.n, c.gbps, got/1000, want/1000)
		if want == 0 { // held near Kmax, where every packet is marked
			if kmax := float64(ECN15().KmaxBytes); got < 0.85*kmax || got > 1.05*kmax {
				t.Errorf("%d flows at %d Gb/s: mean queue %.1f KB, want 0.85 to 1.05 of Kmax", c.n, c.gbps, got/1000)
			}
		} else if !near(got, want, 0.2) {
			t.Errorf("%d flows at %d Gb/s: mean queue %.1f KB, want %.1f within 20 %%", c.n, c.gbps, got/1000, want/1000)
		}
		if p := f.PortTotals(); p.Drops != 0 {
			t.Errorf("%d flows at %d Gb/s: %d drops", c.n, c.gbps, p.Drops)
		}
	}
}

// TestConverges: four flows that start 5 ms apart share the link evenly in the end.
func TestConverges(t *testing.T) {
	if testing.Short() {
		t.Skip("some 3 million events: not with -short")
	}
	f := longFlows(t, 4, 40, 1<<20, ECN15(), 5*des.Millisecond)
	runTo(t, f, 80*des.Millisecond)
	var before [4]uint64
	for i := range before {
		before[i] = f.hosts[i+1].port.stats.Bytes
	}
	runTo(t, f, 100*des.Millisecond)
	sum, squares := 0.0, 0.0
	for i := range before {
		b := float64(f.hosts[i+1].port.stats.Bytes - before[i])
		sum += b
		squares += float64(b * b)
	}
	jain, share := sum*sum/4/squares, sum*8/0.02/40e9
	t.Logf("Jain %.4f, %.3f of the link", jain, share)
	if jain < 0.95 || share < 0.88 {
		t.Errorf("Jain's fairness is %.3f, want 0.95; they use %.3f of the link, want 0.88", jain, share)
	}
}

// TestNotifications: without marks there are none, and at most one an interval.
func TestNotifications(t *testing.T) {
	f := longFlows(t, 2, 40, 1<<20, ECN15(), 0)
	runTo(t, f, 5*des.Millisecond)
	sent, _ := f.Host(0).Notifications()
	_, heard := f.Host(1).Notifications()
	if sent == 0 || heard == 0 || sent > 2*(5000/50+1) {
		t.Errorf("%d notifications in 5 ms of two flows, %d heard by one", sent, heard)
	}
	f = longFlows(t, 1, 40, 1<<20, ECN15(), 0)
	runTo(t, f, 5*des.Millisecond)
	if sent, _ := f.Host(0).Notifications(); sent != 0 {
		t.Errorf("%d notifications without a queue", sent)
	}
}

// TestProfiles: with each set of parameters eight flows that start at once have the
// queue they made behind them after 5 ms, and use the link again as far as their rates
// have grown by then; nothing is dropped.
func TestProfiles(t *testing.T) {
	for name, d := range map[string]DCQCN{"of the paper": DCQCN15(), "of ConnectX": DCQCNCX(), "of HPCC's simulator": DCQCNHPCC(100)} {
		f, err := Single(Config{
			Seed: 1, SkipWrites: true, NIC: NICConfig{DCQCN: d}, Switch: SwitchConfig{ECN: ECNLarge(), PFC: true, BufferBytes: 32 << 20},
		}, 9, Link{Gbps: 100, Delay: des.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			x, y := f.join(t, i+1, 0, 1<<20, nil)
			x.stream(t, y, 1<<20, 4)
		}
		got := goodput(t, f, 0, 5*des.Millisecond, 5*des.Millisecond)
		sent, _ := f.Host(0).Notifications()
		p := f.PortTotals()
		t.Logf("%s: %.1f Gb/s, %d notifications, %d pauses, longest queue %d bytes", name, got, sent, p.PausesSent, p.PeakQueueBytes)
		if got < 30 || sent == 0 || p.Drops != 0 {
			t.Errorf("%s: %.1f Gb/s, %d notifications, %+v", name, got, sent, p)
		}
	}
}
