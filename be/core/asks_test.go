package core

import "testing"

// TestAsksAreShared: while all have more to ask for, what sockets ask for is never further
// apart than one message and one fragment, divided by their weights, whatever the messages'
// lengths; what is given up after it was asked for counts for as long as that takes, and for
// its place among the others. In the control a round is without end: then each asks as
// often as any other.
func TestAsksAreShared(t *testing.T) {
	for _, tt := range []struct {
		desc           string
		sizes, weights [3]int
		giveUp         int // bytes of messages in between that the first one gives up when it has asked for them
	}{
		{"weights", [3]int{1500, 1500, 1500}, [3]int{1, 2, 5}, 0},
		{"lengths", [3]int{1500, 2000, 20_000}, [3]int{1, 1, 1}, 0},
		{"both", [3]int{1500, 5000, 20_000}, [3]int{3, 1, 2}, 0},
		{"one gives up", [3]int{1500, 1500, 1500}, [3]int{1, 2, 5}, 500_000},
	} {
		for _, seed := range seeds(t, 5) {
			for _, control := range []bool{false, true} {
				cfg := testConfig()
				cfg.Backlog, cfg.PeerBacklog = 1<<10, 1<<10
				w := newWorld(t, seed, cfg)
				a := w.sides[0]
				w.sides[1].quota.limit = 1 << 20
				var socks [3]*Socket
				var flows [3]flow
				for i := range socks {
					socks[i], _ = w.open(0)
					a.e.SetWeight(socks[i], tt.weights[i])
				}
				if control {
					a.e.sched.shift = 62
				}
				for i, k := range socks {
					for n := range 400_000 / tt.sizes[i] {
						if i == 0 && n%50 == 1 && tt.giveUp > 0 {
							w.send(a, k, &flows[i], tt.giveUp, 7)
						}
						w.send(a, k, &flows[i], tt.sizes[i], 0)
					}
				}
				given, longest, worst, within := 0, 0, 0, cfg.Fragment
				if tt.giveUp > 0 {
					within += cfg.PeerDepth*tt.sizes[0] + askSlots<<a.e.sched.shift>>weightBits
				}
				for asking := true; asking && w.step(); {
					for socks[0].requested.byTag(7) != nil {
						a.e.Cancel(socks[0], 7)
						given++
					}
					lo, hi := 1<<40, 0
					for i, k := range socks {
						n := int(k.sent)
						if i == 0 {
							n -= given
						}
						asking = asking && k.queue.head != nil && n*tt.sizes[i] < 300_000
						n = n * tt.sizes[i] / tt.weights[i]
						lo, hi = min(lo, n), max(hi, n)
						longest = max(longest, tt.sizes[i]/tt.weights[i])
					}
					worst = max(worst, hi-lo)
				}
				if fair := worst <= longest+within; fair == control || given == 0 && tt.giveUp > 0 {
					t.Errorf("%s, BE_SEED=%d, control %v: %d bytes apart, %d given up", tt.desc, seed, control, worst, given)
				}
			}
		}
	}
}
