package tcp

import (
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// busy is a network with 8 streams to one host that has been running for a while.
func busy(t testing.TB) *Net {
	n := star(t, fabric.Config{Seed: 1}, Tuned(), 9, fabric.Link{Gbps: 100, Delay: des.Microsecond})
	for i := range 8 {
		a, _ := n.Dial(i+1, 0)
		stream(a, 1<<20)
	}
	runTo(t, n, 20*des.Millisecond)
	return n
}

// TestNothingAllocated: once its queues have grown, TCP runs without allocation.
func TestNothingAllocated(t *testing.T) {
	n := busy(t)
	allocs := testing.AllocsPerRun(20, func() {
		if err := n.k.Run(n.k.Now() + 200*des.Microsecond); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 5 { // a queue that grows beyond what it ever had
		t.Errorf("%v allocations in 200 us of virtual time", allocs)
	}
}

// BenchmarkStreams reports how fast virtual time is.
func BenchmarkStreams(b *testing.B) {
	n := busy(b)
	before := n.k.Events()
	b.ReportAllocs()
	for b.Loop() {
		if err := n.k.Run(n.k.Now() + 100*des.Microsecond); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n.k.Events()-before)/b.Elapsed().Seconds(), "events/s")
}
