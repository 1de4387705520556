package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// TestCrash: a node that dies without a word. Whoever sends to it hears of it by the
// NIC's retries, whoever does not by silence; others do not notice.
func TestCrash(t *testing.T) {
	c := star(t, fabric.Config{Seed: 1, SkipWrites: true}, Config{AckTimeout: 8, Keepalive: 5 * time.Millisecond, PeerTimeout: 20 * time.Millisecond}, 4)
	if err := c.Connect(2, 3); err != nil {
		t.Fatal(err)
	}
	busy, bystander := socket(t, c, 1, 0), socket(t, c, 2, 3)
	ended, delivered := 0, 0
	c.Node(3).App.Message = func(*core.Socket, []byte) { delivered++ }
	for range 20 {
		if err := c.Node(1).SendBytes(busy, 1<<20, func(error) { ended++ }); err != nil {
			t.Fatal(err)
		}
		if err := c.Node(2).SendBytes(bystander, 1<<20, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.At(c.Now()+500*des.Microsecond, c.Node(0).Crash)
	run(t, c, 60*des.Millisecond)
	if err := c.Node(1).Engine(0).Err(); !errors.Is(err, cq.RetryExceededError) || ended != 20 {
		t.Errorf("the sender's engine ended with %v, %d of 20 messages ended", err, ended)
	}
	for i := 2; i < 4; i++ {
		if err := c.Node(i).Engine(0).Err(); err == nil {
			t.Errorf("node %d has not noticed", i)
		}
	}
	if delivered != 20 || !c.Node(2).Engine(3).Up() {
		t.Errorf("a bystander: %d of 20 messages, %v", delivered, c.Node(2).Engine(3).Err())
	}
	if n, q := c.Node(1).Held(); n != 0 || q != 0 {
		t.Errorf("the sender holds %d buffers and %d bytes", n, q)
	}
}

// TestSlowReceiver: when the receiver's processor is slow, credits hold the senders
// back; nothing is dropped, retried, or queued in the network.
func TestSlowReceiver(t *testing.T) {
	const peers, messages = 8, 500
	c := star(t, fabric.Config{Seed: 1, Switch: fabric.SwitchConfig{PFC: true}}, Config{}, peers+1)
	got := 0
	c.Node(0).App.Message = func(*core.Socket, []byte) { got++ }
	for i := 1; i <= peers; i++ {
		k := socket(t, c, i, 0)
		c.Node(0).SetStepDelay(200 * des.Microsecond)
		for range messages {
			if err := c.Node(i).SendBytes(k, 2000, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(t, c, des.Never)
	s := c.Stats()
	n := c.Node(0).Host().Stats()
	if got != peers*messages || s.CreditStalls == 0 || s.RNR+n.RNRNaksSent != 0 {
		t.Errorf("%d of %d messages, %d credit stalls, %d RNR", got, peers*messages, s.CreditStalls, s.RNR+n.RNRNaksSent)
	}
	if p := c.f.PortTotals(); p.PausesSent+p.Drops != 0 || p.PeakQueueBytes > peers*64*2100 {
		t.Errorf("%+v", p)
	}
	rest(t, c)
}

// TestNodeWindow: a node that sends to many has no more than its bound on the way,
// and all of them get their share.
func TestNodeWindow(t *testing.T) {
	const peers, window = 8, 256 << 10
	f, err := fabric.Single(fabric.Config{Seed: 1, SkipWrites: true}, peers+1, cable)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(f, Config{NodeWindow: window})
	if err != nil {
		t.Fatal(err)
	}
	var got [peers + 1]int
	for i := 1; i <= peers; i++ {
		if err := c.Connect(0, i); err != nil {
			t.Fatal(err)
		}
		c.Node(i).App.Message = func(_ *core.Socket, b []byte) { got[i] += len(b) }
		k := socket(t, c, 0, i)
		for range 20 {
			if err := c.Node(0).SendBytes(k, 1<<20, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	start, peak := c.Now(), 0
	for now := start; now < start+10*des.Millisecond; now += 10 * des.Microsecond {
		run(t, c, now)
		peak = max(peak, c.Node(0).bound.Posted())
	}
	sum, least, most := 0, got[1], 0
	for _, n := range got[1:] {
		sum, least, most = sum+n, min(least, n), max(most, n)
	}
	if peak > window || peak < window/2 {
		t.Errorf("%d bytes on the way, the bound is %d", peak, window)
	}
	if share := float64(sum) * 8 / 0.01 / 1e11; share < 0.85 || most-least > 2<<20 {
		t.Errorf("%.3f of the link; the receivers got %d to %d bytes", share, least, most)
	}
	run(t, c, des.Never)
	rest(t, c)
}
