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

// TestCloseSocket: what was queued arrives, and then both ends hear of the end.
func TestCloseSocket(t *testing.T) {
	c := star(t, fabric.Config{Seed: 1}, Config{}, 2)
	a, b := c.Node(1), c.Node(0)
	got := 0
	var closed [2]error
	b.App.Message = func(_ *core.Socket, m []byte) { got += len(m) }
	a.App.Closed = func(_ *core.Socket, err error) { closed[0] = err }
	b.App.Closed = func(_ *core.Socket, err error) { closed[1] = err }
	k := socket(t, c, 1, 0)
	for range 5 {
		if err := a.SendBytes(k, 300_000, nil); err != nil {
			t.Fatal(err)
		}
	}
	a.CloseSocket(k)
	run(t, c, des.Never)
	if got != 1_500_000 || !errors.Is(closed[0], core.ErrClosed) || !errors.Is(closed[1], core.ErrPeerClosed) {
		t.Errorf("%d bytes arrived, the ends heard %v and %v", got, closed[0], closed[1])
	}
	if n := a.Engine(0).Sockets() + b.Engine(1).Sockets(); n != 0 {
		t.Errorf("%d sockets are left", n)
	}
	rest(t, c)
}

func TestGoodbye(t *testing.T) {
	c := star(t, fabric.Config{Seed: 1}, Config{}, 2)
	got := 0
	c.Node(0).App.Message = func(_ *core.Socket, m []byte) { got++ }
	k := socket(t, c, 1, 0)
	for range 10 {
		if err := c.Node(1).SendBytes(k, 100_000, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.Node(1).Goodbye(0, time.Second)
	run(t, c, des.Never)
	if x, y := c.Node(1).Engine(0).Err(), c.Node(0).Engine(1).Err(); got != 10 || !errors.Is(x, core.ErrClosed) || !errors.Is(y, core.ErrPeerClosed) {
		t.Errorf("%d of 10 arrived, ends %v and %v", got, x, y)
	}
	rest(t, c)
}

// TestCutLink: with work in every state, each message ends once, with the error
// that the NIC gave, and a new engine works when the link is mended.
func TestCutLink(t *testing.T) {
	c := star(t, fabric.Config{Seed: 3}, Config{AckTimeout: 6, RetryCount: 2}, 2)
	a := c.Node(1)
	k := socket(t, c, 1, 0)
	ended := 0
	var failed error
	a.App.Failed = func(_ int, err error) { failed = err }
	for range 50 {
		err := a.SendBytes(k, 200_000, func(error) { ended++ })
		if err != nil {
			t.Fatal(err)
		}
	}
	start := c.Now()
	c.At(start+300*des.Microsecond, func() { a.Host().SetDown(true) })
	run(t, c, start+des.Second)
	if ended != 50 || !errors.Is(failed, cq.RetryExceededError) {
		t.Errorf("%d of 50 messages ended, the engine failed with %v", ended, failed)
	}
	c.Node(0).Fail(1, core.ErrPeerTimeout) // it has nothing to send and no keepalive
	a.Host().SetDown(false)
	run(t, c, des.Never)
	if err := c.Connect(1, 0); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, manySizes)
	rest(t, c)
}

// TestKeepalive: the side that only receives finds out by its keepalive. Without one an
// idle engine never does.
func TestKeepalive(t *testing.T) {
	deaf := star(t, fabric.Config{Seed: 3}, Config{AckTimeout: 6, RetryCount: 2}, 2)
	socket(t, deaf, 1, 0)
	run(t, deaf, 100*des.Millisecond)
	deaf.Node(1).Host().SetDown(true)
	run(t, deaf, 60*des.Second)
	if !deaf.Node(0).Engine(1).Up() {
		t.Errorf("control without keepalive: %v", deaf.Node(0).Engine(1).Err())
	}
	for i := range 2 {
		deaf.Node(i).Fail(1-i, core.ErrPeerTimeout)
	}
	deaf.Node(1).Host().SetDown(false)
	run(t, deaf, des.Never)
	rest(t, deaf)
	c := star(t, fabric.Config{Seed: 3}, Config{AckTimeout: 6, RetryCount: 2, Keepalive: time.Millisecond, PeerTimeout: 10 * time.Millisecond}, 2)
	socket(t, c, 1, 0)
	run(t, c, 100*des.Millisecond)
	if !c.Node(0).Engine(1).Up() || !c.Node(1).Engine(0).Up() {
		t.Fatal("an idle engine ended")
	}
	c.Node(1).Host().SetDown(true)
	run(t, c, 120*des.Millisecond)
	for i := range 2 {
		if err := c.Node(i).Engine(1 - i).Err(); err == nil {
			t.Errorf("node %d did not find out", i)
		}
	}
	rest(t, c)
}
