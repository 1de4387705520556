package cluster

import (
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// TestWindowLaw: of n engines with a window of W that share a link of rate C, what
// does not fit into the time T that a window takes on an empty path stands in the
// queue: n W - C T, within 5 % or n packets; and a window takes n W / C.
func TestWindowLaw(t *testing.T) {
	const window = 64 << 10
	onWire := float64(window) / 4096 * (4096 + 82) // of a window
	roundTrip := func(n int) (queue float64, trip des.Time) {
		c := star(t, fabric.Config{Seed: 1, SkipWrites: true}, Config{Window: window}, n+1)
		for i := 1; i <= n; i++ {
			k := socket(t, c, i, 0)
			var again func(error)
			again = func(err error) {
				if err == nil {
					if err := c.Node(i).SendBytes(k, messageSize, again); err != nil {
						t.Fatal(err)
					}
				}
			}
			again(nil)
			again(nil)
		}
		down := func() float64 { return float64(c.Node(0).Host().DownlinkQueue()) }
		start := c.Now() + 5*des.Millisecond
		run(t, c, start)
		fragments, samples := c.Node(1).Stats().Fragments, 0
		const span = 10 * des.Millisecond
		for now := start; now < start+span; now += des.Microsecond {
			run(t, c, now)
			queue += down()
			samples++
		}
		return queue / float64(samples), span / des.Time(c.Node(1).Stats().Fragments-fragments)
	}
	const psByte = 80
	_, alone := roundTrip(1)
	for _, n := range []int{4, 16} {
		queue, trip := roundTrip(n)
		want := float64(n)*onWire - float64(alone)/psByte
		t.Logf("%d engines: mean queue %.0f bytes, the law says %.0f; a fragment takes %v, the law says %.0f ns", n, queue, want, trip.Duration(), float64(n)*onWire*psByte/1000)
		if slack := max(want*0.05, float64(n)*4178); queue < want-slack || queue > want+slack {
			t.Errorf("%d engines: mean queue %.0f bytes, want %.0f within %.0f", n, queue, want, slack)
		}
		if law := float64(n) * onWire * psByte; float64(trip) < law*0.95 || float64(trip) > law*1.05 {
			t.Errorf("%d engines: a fragment takes %d ps, want %.0f within 5 %%", n, trip, law)
		}
	}
}
