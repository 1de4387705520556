package fabric

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// TestGoodput holds long WRITEs to published rates of reliable connections: table 2
// of the ByteExpress paper (within 3 %; the first within 0.5 %), and a public report
// of perftest at 400 Gb/s (within 0.5 %).
func TestGoodput(t *testing.T) {
	for _, c := range []struct {
		gbps, size int
		mtu        qp.MTU
		want, near float64
	}{
		{25, 1 << 20, qp.MTU1024, 23.15, 0.005},
		{100, 1 << 20, qp.MTU1024, 92.26, 0.03},
		{100, 1 << 20, qp.MTU4096, 97.03, 0.03},
		{200, 1 << 20, qp.MTU4096, 191.36, 0.03},
		{400, 128 << 10, qp.MTU4096, 392.1, 0.005},
	} {
		f, err := Pair(Config{Seed: 1, SkipWrites: true, NIC: NICConfig{MTU: c.mtu}}, Link{Gbps: c.gbps, Delay: 10 * des.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		x, y := f.join(t, 0, 1, c.size, nil)
		x.stream(t, y, c.size, 16)
		got := goodput(t, f, 1, des.Millisecond, 4*des.Millisecond)
		t.Logf("%d Gb/s, MTU %d: %.2f Gb/s of payload, published %.2f", c.gbps, c.mtu.Bytes(), got, c.want)
		if !near(got, c.want, c.near) {
			t.Errorf("%d Gb/s, MTU %d: %.2f Gb/s, want %.2f within %.1f %%", c.gbps, c.mtu.Bytes(), got, c.want, c.near*100)
		}
	}
}

// TestPingPong holds a 64-byte message there and back to public figures of
// ConnectX-5: 1.63 us back to back, 2.17 us over a switch of 269 ns; within 10 %.
func TestPingPong(t *testing.T) {
	cable := Link{Gbps: 100, Delay: 10 * des.Nanosecond} // 2 m
	for _, c := range []struct {
		name string
		make func() (*Fabric, error)
		want float64
	}{
		{"back to back", func() (*Fabric, error) { return Pair(Config{Seed: 1}, cable) }, 1630},
		{"one switch", func() (*Fabric, error) {
			return Single(Config{Seed: 1, Switch: SwitchConfig{Latency: 269 * des.Nanosecond}}, 2, cable)
		}, 2170},
	} {
		f, err := c.make()
		if err != nil {
			t.Fatal(err)
		}
		x, y := f.join(t, 0, 1, 64, nil)
		ends := []*end{x, y}
		const trips = 100
		left := 2 * trips
		for i, e := range ends {
			send := func() {
				if left--; left < 0 {
					return
				}
				if _, err := e.q.PostSend([]qp.SendWR{{Opcode: qp.Send, SGEs: e.sge(64)}}); err != nil {
					t.Fatal(err)
				}
			}
			for range trips + 1 {
				if _, err := e.q.PostRecv([]qp.RecvWR{{SGEs: e.sge(64)}}); err != nil {
					t.Fatal(err)
				}
			}
			e.done = func(c cq.Completion) {
				if c.Status != cq.Success {
					t.Fatal(c.Err())
				}
				if c.Opcode == cq.Recv {
					// Sends are not signaled; a signaled one would free their slots.
					send()
				}
			}
			if i == 0 {
				send()
			}
		}
		var last des.Time
		for {
			ran, err := f.k.Step()
			if err != nil {
				t.Fatal(err)
			}
			if !ran {
				break
			}
			if left < 0 && last == 0 {
				last = f.k.Now()
			}
		}
		got := float64(last) / trips / float64(des.Nanosecond)
		t.Logf("%s: %.0f ns, published %.0f", c.name, got, c.want)
		if !near(got, c.want, 0.1) {
			t.Errorf("%s: a trip takes %.0f ns, want %.0f within 10 %%", c.name, got, c.want)
		}
	}
}

// TestGoBackN holds goodput under loss to go-back-N's law: of each loss, k packets
// are sent again.
func TestGoBackN(t *testing.T) {
	for _, loss := range []float64{1e-4, 1e-3} {
		f, err := Pair(Config{Seed: 5, SkipWrites: true}, Link{Gbps: 100, Delay: 5 * des.Microsecond, Loss: loss})
		if err != nil {
			t.Fatal(err)
		}
		x, y := f.join(t, 0, 1, 256<<10, func(p *qp.Path) { p.AckTimeout = 8 })
		x.stream(t, y, 256<<10, 16)
		got := goodput(t, f, 1, des.Millisecond, 50*des.Millisecond)
		// What is sent from the lost packet until its NAK is back, at 334 ns each.
		k := float64(2*5*des.Microsecond+DefaultRxLatency*2) / float64(4178*80)
		want := 100 * 4096. / 4178 * (1 - loss) / (1 - loss + loss*k)
		t.Logf("loss %g: %.2f Gb/s, the law says %.2f", loss, got, want)
		if !near(got, want, 0.1) {
			t.Errorf("loss %g: %.2f Gb/s, want %.2f within 10 %%", loss, got, want)
		}
	}
}

// TestBadLinks: what cannot be is an error.
func TestBadLinks(t *testing.T) {
	for _, c := range []struct {
		what string
		make func() error
	}{
		{"no rate", func() error { _, err := Pair(Config{}, Link{}); return err }},
		{"negative delay", func() error { _, err := Pair(Config{}, Link{Gbps: 1, Delay: -1}); return err }},
		{"loss of more than all", func() error { _, err := Pair(Config{}, Link{Gbps: 1, Loss: 1.5}); return err }},
		{"two links", func() error {
			f := New(Config{})
			h, s := f.AddHost(), f.AddSwitch()
			_ = f.LinkHost(h, s, Link{Gbps: 1})
			return f.LinkHost(h, s, Link{Gbps: 1})
		}},
		{"itself", func() error {
			f := New(Config{})
			h := f.AddHost()
			return f.LinkHosts(h, h, Link{Gbps: 1})
		}},
		{"switch to itself", func() error {
			f := New(Config{})
			s := f.AddSwitch()
			return f.LinkSwitches(s, s, Link{Gbps: 1})
		}},
		{"no link", func() error {
			f := New(Config{})
			f.AddHost()
			return f.Build()
		}},
		{"no leaf", func() error { _, err := LeafSpine(Config{}, 4, 0, 1, Link{Gbps: 1}, Link{Gbps: 1}); return err }},
		{"all headroom", func() error {
			_, err := Single(Config{Switch: SwitchConfig{PFC: true, BufferBytes: 100_000}}, 8, Link{Gbps: 100, Delay: des.Microsecond})
			return err
		}},
	} {
		if err := c.make(); err == nil {
			t.Errorf("%s: no error", c.what)
		}
	}
}

// TestBadConfig: so is what would not end, or mean nothing.
func TestBadConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"Switch.BufferBytes":      func(c *Config) { c.Switch.BufferBytes = -1 },
		"Switch.EgressBytes":      func(c *Config) { c.Switch.EgressBytes = -1 },
		"Switch.ECN.KminBytes":    func(c *Config) { c.Switch.ECN.KminBytes = 300_000 },
		"Switch.ECN.Pmax":         func(c *Config) { c.Switch.ECN.Pmax = math.NaN() },
		"NIC.RxLatency":           func(c *Config) { c.NIC.RxLatency = -1 },
		"NIC.Quantum":             func(c *Config) { c.NIC.Quantum = -1 },
		"NIC.MTU":                 func(c *Config) { c.NIC.MTU = 6 },
		"NIC.DCQCN.IncreaseTimer": func(c *Config) { c.NIC.DCQCN.IncreaseTimer = 0 },
		"NIC.DCQCN.Rmin":          func(c *Config) { c.NIC.DCQCN.Rmin = 0 },
		"NIC.DCQCN.Gain":          func(c *Config) { c.NIC.DCQCN.Gain = -1 },
	} {
		c := Config{NIC: NICConfig{DCQCN: DCQCN15()}, Switch: SwitchConfig{ECN: ECN15()}}
		if _, err := Pair(c, Link{Gbps: 1}); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if _, err := Pair(c, Link{Gbps: 1}); err == nil || !strings.Contains(err.Error(), name+" is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	for _, mtu := range []qp.MTU{qp.MTU1024, qp.MTU4096} {
		b.Run(fmt.Sprintf("mtu=%d", mtu.Bytes()), func(b *testing.B) {
			f, err := Single(Config{Seed: 1, SkipWrites: true, NIC: NICConfig{MTU: mtu}}, 2, Link{Gbps: 100, Delay: des.Microsecond})
			if err != nil {
				b.Fatal(err)
			}
			x, y := f.join(b, 0, 1, 1<<20, nil)
			x.stream(b, y, 1<<20, 16)
			b.ReportAllocs()
			before := f.k.Events()
			for b.Loop() {
				if err := f.k.Run(f.k.Now() + 100*des.Microsecond); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(f.k.Events()-before)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
