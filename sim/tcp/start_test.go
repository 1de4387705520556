package tcp

import (
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// TestSlowStart: the first flight has ten segments (RFC 6928), and each round trip has
// twice those of the one before. Over a long way nothing is probed or sent again before
// the first acknowledgement can be there.
func TestSlowStart(t *testing.T) {
	const mss, delay = 1460, 2500 * des.Microsecond // of each of two cables
	for _, c := range []struct{ segments, trips int }{{10, 0}, {11, 1}, {30, 1}, {31, 2}, {70, 2}, {71, 3}, {150, 3}, {310, 4}} {
		n := star(t, fabric.Config{Seed: 1}, Config{Costs: &free, TSOBytes: 1, GROBytes: 1, AckSegments: 1}, 2, fabric.Link{Gbps: 10, Delay: delay})
		a, b := n.Dial(1, 0)
		var came des.Time
		b.OnMessage = func(Message) { came = n.k.Now() }
		a.Send(c.segments*mss, 1)
		runTo(t, n, des.Second)
		want := des.Time(2+4*c.trips) * delay
		if slack := des.Time(c.segments+20) * 2 * des.Microsecond; came < want || came > want+slack {
			t.Errorf("%d segments take %v, want %d round trips and a half, %v", c.segments, came.Duration(), c.trips, want.Duration())
		}
		if s := n.Stats(); s.Probes != 0 || s.Retransmits != 0 || s.Timeouts != 0 {
			t.Errorf("%d segments: %+v", c.segments, s)
		}
	}
}
