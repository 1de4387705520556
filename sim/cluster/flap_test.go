package cluster

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// caller sends messages to a peer, some at a time, and dials again when its engine
// fails.
type caller struct {
	t        testing.TB
	c        *Cluster
	from, to int
	pause    des.Time    // between a failed dial and the next, as be.Node's longest is a second
	linkUp   func() bool // a bootstrap ends while it is not

	dials   int // that led to an engine
	errs    int // engines that failed
	longest des.Time
	buckets [10]int // bytes delivered in each second
}

const (
	callerDepth   = 4
	callerMessage = 256 << 10
)

func startCaller(t testing.TB, c *Cluster, from, to int, pause des.Time, linkUp func() bool) *caller {
	l := &caller{t: t, c: c, from: from, to: to, pause: pause, linkUp: linkUp}
	c.Node(to).App.Message = func(_ *core.Socket, b []byte) { l.buckets[min(int(c.Now()/des.Second), 9)] += len(b) }
	c.Node(from).App.Failed = func(int, error) { l.errs++; l.dial() }
	c.Node(from).App.Opened = func(k *core.Socket, err error) {
		if err != nil {
			return // Failed comes, too
		}
		for range callerDepth {
			l.send(k)
		}
	}
	l.dial()
	return l
}

func (l *caller) dial() {
	if !l.linkUp() {
		l.c.At(l.c.Now()+l.pause, l.dial)
		return
	}
	if e := l.c.Node(l.to).Engine(l.from); e != nil && e.Up() {
		l.c.Node(l.to).Fail(l.from, errors.New("the peer comes again"))
	}
	if err := l.c.Connect(l.from, l.to); err != nil {
		l.t.Fatal(err)
	}
	l.dials++
	if _, err := l.c.Node(l.from).Open(l.to, "calls"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *caller) send(k *core.Socket) {
	began := l.c.Now()
	err := l.c.Node(l.from).SendBytes(k, callerMessage, func(err error) {
		l.longest = max(l.longest, l.c.Now()-began)
		if err == nil {
			l.send(k)
		}
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// rate is the bytes a second delivered in the seconds from a to b.
func (l *caller) rate(a, b int) (sum float64) {
	for _, n := range l.buckets[a:b] {
		sum += float64(n) / float64(b-a)
	}
	return sum
}

// TestPortFlap (case C17): a port is down from the 2nd to the 6th second of a run. Whether its
// node is told or the retries of its NIC find out, no call waits longer than those
// take, the engine is rebuilt once, 3 s after the port is back the rate is that of
// before, and a pair on another port notices nothing. The control dials again only
// after 20 s, as a transport did that never came back to its rate.
func TestPortFlap(t *testing.T) {
	const down, up = 2 * des.Second, 6 * des.Second
	for _, tt := range []struct {
		desc  string
		event bool
		pause des.Time
		back  bool
	}{
		{"with an event", true, des.Second, true},
		{"in silence", false, des.Second, true},
		{"control: dials rarely", true, 20 * des.Second, false},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			f, err := fabric.Single(fabric.Config{Seed: 1, SkipWrites: true}, 4, fabric.Link{Gbps: 1, Delay: des.Microsecond})
			if err != nil {
				t.Fatal(err)
			}
			c, err := New(f, Config{})
			if err != nil {
				t.Fatal(err)
			}
			linkUp := true
			flapping := startCaller(t, c, 1, 0, tt.pause, func() bool { return linkUp })
			steady := startCaller(t, c, 2, 3, tt.pause, func() bool { return true })
			c.At(down, func() {
				linkUp = false
				c.Node(1).Host().SetDown(true)
				if tt.event {
					c.Node(1).Fail(0, errors.New("port event"))
				}
			})
			c.At(up, func() {
				linkUp = true
				c.Node(1).Host().SetDown(false)
			})
			run(t, c, 10*des.Second)

			before, after := flapping.rate(0, 2), flapping.rate(9, 10)
			t.Logf("%.1f MB/s before, %.1f in the outage, %.1f 3 s after it; longest call %v, %d engines", before/1e6, flapping.rate(3, 6)/1e6, after/1e6, flapping.longest.Duration(), flapping.dials)
			if before < 0.9*1e9/8 || flapping.rate(3, 6) != 0 {
				t.Errorf("%.0f bytes a second before, %.0f in the outage", before, flapping.rate(3, 6))
			}
			if got := after >= 0.9*before; got != tt.back {
				t.Errorf("3 s after the port is back: %.0f bytes a second, before %.0f", after, before)
			}
			if tt.back && (flapping.dials != 2 || flapping.errs != 1) {
				t.Errorf("%d engines, %d failures, want 2 and 1", flapping.dials, flapping.errs)
			}
			if flapping.longest > des.Second {
				t.Errorf("a call took %v", flapping.longest.Duration())
			}
			if steady.errs != 0 || steady.rate(2, 10) < 0.99*steady.rate(0, 2) {
				t.Errorf("on another port: %d failures, %.0f bytes a second instead of %.0f", steady.errs, steady.rate(2, 10), steady.rate(0, 2))
			}
		})
	}
}
