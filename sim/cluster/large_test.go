package cluster

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// TestLarge is a look past one cluster: so many hosts in racks of 32 under 32 spines,
// each of which pushes messages of 20 KB to three others, a few racks away, every 100
// us. The model is the fine one, packet by packet. All of it arrives without a drop.
func TestLarge(t *testing.T) {
	hosts, steps := 400, 2
	if os.Getenv("SIM_FULL") != "" {
		hosts, steps = 10_000, 3
	}
	const peers, period = 3, 100 * des.Microsecond
	fc := fabric.Config{Seed: 1, SkipWrites: true, Switch: fabric.SwitchConfig{BufferBytes: 32 << 20, PFC: true, ECN: fabric.ECNLarge()}}
	fc.NIC.DCQCN = fabric.DCQCN15()
	began := time.Now()
	f, err := fabric.LeafSpine(fc, hosts, 32, 32, fabric.Link{Gbps: 100, Delay: 300 * des.Nanosecond}, fabric.Link{Gbps: 100, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(f, Config{EagerBytes: 512, RecvDepth: 8, SendDepth: 16, Fragment: 8 << 10, Window: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	setUp := time.Since(began)
	took, left := []des.Time{}, 0
	rng := des.NewStream(1, 1<<20, 1, 0)
	start := 5 * des.Millisecond
	for i := range hosts {
		for k := range peers {
			to := (i + 37 + 101*k) % hosts
			if err := c.Connect(i, to); err != nil {
				t.Fatal(err)
			}
			sock, err := c.Node(i).Open(to, "push")
			if err != nil {
				t.Fatal(err)
			}
			for s := range steps {
				c.At(start+des.Time(s)*period+des.Time(rng.N(int64(period))), func() {
					at := c.Now()
					left++
					err := c.Node(i).SendBytes(sock, pushSizes[rng.N(int64(len(pushSizes)))], func(err error) {
						if err != nil {
							t.Errorf("%d to %d: %v", i, to, err)
						}
						left--
						took = append(took, c.Now()-at)
					})
					if err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
	run(t, c, start)
	joined := time.Since(began)
	before := f.Kernel().Events()
	run(t, c, start+des.Time(steps)*period+5*des.Millisecond)
	events, span := f.Kernel().Events()-before, time.Since(began)-joined
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	n := f.Counts()
	if left != 0 || len(took) != hosts*peers*steps || n.Dropped != 0 || !n.Conserved() {
		t.Errorf("%d of %d messages ended, %d are left, %+v", len(took), hosts*peers*steps, left, n)
	}
	p := f.PortTotals()
	t.Logf("%d hosts: network %v, with engines %v; %d events in %v; %.2f MB a host; %d pauses, longest queue %d bytes", hosts, setUp, joined, events, span, float64(m.Sys)/float64(hosts)/1e6, p.PausesSent, p.PeakQueueBytes)
}
