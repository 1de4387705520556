package fabric

import (
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// TestConservation runs a network with everything in it, and looks at 1000 random
// instants: every packet is somewhere, every account is right. At no event does the
// data class of a paused port begin a frame. In the end nothing is left anywhere.
func TestConservation(t *testing.T) {
	few := Cache{Entries: 4, Fetches: 2, Miss: des.Microsecond}
	cfg := Config{
		Seed: 3, SkipWrites: true, NIC: NICConfig{DCQCN: DCQCN15(), Contexts: Contexts{Cache: few}, WQEs: few, Pages: Pages{Cache: few}},
		Switch: SwitchConfig{BufferBytes: 2 << 20, PFC: true, ECN: ECN{KminBytes: 20_000, KmaxBytes: 80_000, Pmax: 0.2}, LossyECN: ECNDCTCP()},
	}
	f, err := LeafSpine(cfg, 12, 4, 2, Link{Gbps: 100, Delay: 300 * des.Nanosecond}, Link{Gbps: 100, Delay: des.Microsecond, Loss: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for i := range 12 {
		for _, to := range []int{0, (i + 5) % 12} {
			if to == i {
				continue
			}
			x, y := f.join(t, i, to, 500_000, func(p *qp.Path) { p.AckTimeout = 8 })
			left++
			x.done = func(c cq.Completion) {
				left--
				if c.Status != cq.Success {
					t.Errorf("%v", c.Err())
				}
			}
			x.write(t, y, 500_000)
		}
		blast(f, i, (i+1)%12, 300, i%2 == 0)
	}
	at := func(us des.Time, do func()) {
		f.k.At(us*des.Microsecond, f.k.Handle(func(int32, int32) { do() }), 0, 0)
	}
	leaf, spine := f.switches[2], f.switches[0]
	down := func(d bool) func() {
		return func() {
			if err := f.SetLinkDown(leaf, spine, d); err != nil {
				t.Error(err)
			}
		}
	}
	at(60, down(true))
	at(600, down(false))
	at(30, func() { f.Host(0).SetDMA(40) })
	at(300, func() { f.Host(0).SetDMA(0) })
	at(100, func() { f.Host(5).StickPause(50 * des.Microsecond) })

	r := des.NewStream(1, 55, 0, 0)
	next, looks, pausedFrames := des.Time(0), 0, 0
	sending := make([]*frame, len(f.ports))
	for f.k.Pending() > 0 {
		for i, p := range f.ports {
			sending[i] = p.tx
		}
		paused := make([]bool, 0, len(f.ports))
		for _, p := range f.ports {
			paused = append(paused, p.paused)
		}
		if _, err := f.k.Step(); err != nil {
			t.Fatal(err)
		}
		for i, p := range f.ports {
			if paused[i] && p.paused && p.tx != nil && p.tx != sending[i] && p.tx.class == data {
				t.Fatalf("at %v port %d begins a data frame while it is paused", f.k.Now().Duration(), i)
			}
			if paused[i] && p.tx != nil {
				pausedFrames++
			}
		}
		if f.k.Now() >= next && looks < 1000 {
			f.check(t)
			looks++
			next = f.k.Now() + des.Time(r.N(int64(2*des.Microsecond)))
		}
	}
	c, p := f.Counts(), f.PortTotals()
	t.Logf("%d looks, %+v, %+v", looks, c, p)
	if looks < 1000 || p.PausesSent == 0 || p.Lost == 0 || c.Dropped == 0 || pausedFrames == 0 {
		t.Errorf("%d looks, %+v: something did not happen", looks, p)
	}
	f.check(t)
	if left != 0 || c.Queued != 0 || !c.Conserved() {
		t.Errorf("%d messages did not end, %+v", left, c)
	}
	for _, s := range f.switches {
		if s.used != 0 || s.over != 0 {
			t.Errorf("switch %d keeps %d and %d bytes", s.id, s.used, s.over)
		}
	}
	for _, p := range f.ports {
		if p.ingress != 0 || p.over != 0 || p.xoff || p.paused || p.queue[control].n+p.queue[data].n+p.queue[lossy].n != 0 {
			t.Errorf("port %d is left with %d and %d bytes, %v %v", p.id, p.ingress, p.over, p.xoff, p.paused)
		}
	}
}
