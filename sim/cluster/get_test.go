package cluster

import (
	"testing"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// TestGet: many senders whose receiver READs what they offer. Its answers share the
// network with acknowledgements, none of which may overtake an answer of the same
// queue pair: that would count as a loss. Nothing is asked for twice, and the READs of
// all engines are paced as WRITEs are.
func TestGet(t *testing.T) {
	const peers, messages = 16, 40
	fc := fabric.Config{Seed: 1, SkipWrites: true, Switch: fabric.SwitchConfig{PFC: true, BufferBytes: 8 << 20, ECN: fabric.ECN{KminBytes: 40_000, KmaxBytes: 160_000, Pmax: 0.2}}}
	fc.NIC.DCQCN = fabric.DCQCN15()
	c := star(t, fc, Config{Get: true, Fragment: 16 << 10, Window: 1 << 20}, peers+1)
	got, last := 0, des.Time(0)
	c.Node(0).App.Message = func(*core.Socket, []byte) { got, last = got+1, c.Now() }
	for i := 1; i <= peers; i++ {
		k := socket(t, c, i, 0)
		if err := k.Engine().SetGet(k, true); err != nil {
			t.Fatal(err)
		}
		for range messages {
			if err := c.Node(i).SendBytes(k, 100_000, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	start := c.Now()
	run(t, c, des.Never)
	s, n := c.Stats(), c.Node(0).Host().Stats()
	if got != peers*messages || s.Offered != peers*messages || s.Reads != peers*messages*7 {
		t.Errorf("%d of %d messages, %d offered, %d READs of 7 each", got, peers*messages, s.Offered, s.Reads)
	}
	if n.ImpliedNaks+n.Retransmits+n.Timeouts != 0 {
		t.Errorf("READs were sent again, and nothing was lost: %+v", n)
	}
	if sent, _ := c.Node(0).Host().Notifications(); sent == 0 {
		t.Error("no notification: nothing was congested, the test shows nothing")
	}
	// Together they take no more than twice the time of the link: DCQCN leaves it idle at times.
	if took, least := last-start, des.Time(peers*messages*100_000*80); took < least || took > 2*least {
		t.Errorf("took %v, the link alone %v", took.Duration(), least.Duration())
	}
	rest(t, c)
}
