package cluster

import (
	"testing"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

func costs() *hostcpu.EngineCosts {
	c := hostcpu.DefaultEngine()
	return &c
}

// TestMessagesWithCosts: what costs time arrives all the same.
func TestMessagesWithCosts(t *testing.T) {
	for _, loss := range []float64{0, 0.01} {
		c := star(t, fabric.Config{Seed: 1}, Config{AckTimeout: 8, Costs: costs()}, 2)
		c.Node(1).Host().SetLoss(loss)
		exchange(t, c, manySizes)
		c.Node(1).Host().SetLoss(0)
		rest(t, c)
	}
}

// pingPong is the time of a message of some size one way, of requests and replies one
// after the other in a rack.
func pingPong(t *testing.T, cfg Config, size int) (oneWay des.Time, c *Cluster) {
	t.Helper()
	f, err := fabric.Single(fabric.Config{Seed: 1}, 2, fabric.Link{Gbps: 100, Delay: 10 * des.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if c, err = New(f, cfg); err != nil {
		t.Fatal(err)
	}
	if err = c.Connect(1, 0); err != nil {
		t.Fatal(err)
	}
	const trips = 100
	left := 2 * trips
	var end des.Time
	for i := range 2 {
		n := c.Node(i)
		n.App.Message = func(k *core.Socket, b []byte) {
			if left--; left == 0 {
				end = c.Now()
			} else if left > 0 {
				if err := n.SendBytes(k, size, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	k := socket(t, c, 1, 0)
	run(t, c, c.Now()+des.Millisecond)
	start := c.Now()
	if err := c.Node(1).SendBytes(k, size, nil); err != nil {
		t.Fatal(err)
	}
	run(t, c, start+100*des.Millisecond)
	if end == 0 {
		t.Fatalf("%d messages are missing", left)
	}
	return (end - start) / (2 * trips), c
}

// TestOneWay holds a message of 2 KB, from application to application, to the
// literature's 2.8 us, within 15 %; and what it costs to the table of costs.
func TestOneWay(t *testing.T) {
	got, c := pingPong(t, Config{Costs: costs()}, 2048)
	us := float64(got) / float64(des.Microsecond)
	t.Logf("2 KB one way: %.2f us, literature 2.8", us)
	if us < 2.8*0.85 || us > 2.8*1.15 {
		t.Errorf("2 KB one way: %.2f us, want 2.8 within 15 %%", us)
	}
	busy := c.Node(0).CPU().Busy(hostcpu.Engine) / 100
	t.Logf("the engine is busy for %v a message and its reply", busy.Duration())
	k := costs()
	// At least: dispatch both, a completion, a request, a doorbell, a receive, two polls.
	least := 2*k.Message + k.Completion + k.WQE + k.Doorbell + k.Receive + 2*k.EmptyPoll
	if busy < least || busy > 2*least {
		t.Errorf("the engine is busy for %v a message and its reply, the costs say %v and something for acknowledgements", busy.Duration(), least.Duration())
	}
}

// incoming is how many small messages a second a node with costs takes of some peers,
// each with so many under way, where tasks take that many percent of their time.
func incoming(t *testing.T, threads, percent, peers, outstanding int) float64 {
	t.Helper()
	c := star(t, fabric.Config{Seed: 1}, Config{Costs: costs(), Threads: threads}, peers+1)
	got := 0
	c.Node(0).App.Message = func(*core.Socket, []byte) { got++ }
	c.Node(0).CPU().SetSpeed(percent)
	for i := 1; i <= peers; i++ {
		k, n := socket(t, c, i, 0), c.Node(i)
		var again func(error)
		again = func(err error) {
			if err == nil {
				if err := n.SendBytes(k, 64, again); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range outstanding {
			again(nil)
		}
	}
	start := c.Now()
	got = 0
	run(t, c, start+2*des.Millisecond)
	busy := c.Node(0).CPU().Busy(hostcpu.Engine)
	if share := float64(busy) / float64(c.Now()) / float64(threads); share > 1.05 {
		t.Errorf("%d threads are busy for %.2f of the time", threads, share)
	}
	return float64(got) / 2e-3
}

// TestSlowProcessor: a processor that is ten times as slow is that much busier, and
// the rate of small messages is bound by it.
func TestSlowProcessor(t *testing.T) {
	fast, slow := incoming(t, 1, 100, 4, 32), incoming(t, 1, 1000, 4, 32)
	t.Logf("%.0f messages a second, %.0f with a tenth of the speed", fast, slow)
	// A message is a completion, its dispatch and a receive: 410 ns.
	if fast < 1.6e6 || fast > 2.5e6 {
		t.Errorf("%.0f messages a second, the costs say 2.4 million and fewer", fast)
	}
	if r := fast / slow; r < 8 || r > 12 {
		t.Errorf("with a tenth of the speed the rate is 1/%.1f", r)
	}
}

// TestThreads: engines that are spread over four threads take small messages four
// times as fast as on one, as long as nothing else is the bound.
func TestThreads(t *testing.T) {
	one, four := incoming(t, 1, 1000, 8, 16), incoming(t, 4, 1000, 8, 16)
	t.Logf("%.0f messages a second with a thread, %.0f with four", one, four)
	if r := four / one; r < 3.5 || r > 5 {
		t.Errorf("four threads are %.2f times as fast as one", r)
	}
}
