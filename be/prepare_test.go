package be_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// registering is a device that takes its time to register long memory: until goOn is
// closed.
type registering struct {
	verbs.Context
	asked atomic.Int32
	goOn  chan struct{}
}

type registeringPD struct {
	verbs.PD
	c *registering
}

func (c *registering) AllocPD() (verbs.PD, error) {
	pd, err := c.Context.AllocPD()
	return &registeringPD{pd, c}, err
}

func (p *registeringPD) Register(b []byte, a mr.Access) (mr.Region, error) {
	if len(b) > bemalloc.BlockBytes {
		p.c.asked.Add(1)
		select {
		case <-p.c.goOn:
		case <-time.After(time.Minute): // who waits for it fails the test
		}
	}
	return p.PD.Register(b, a)
}

// TestWorkerDoesNotRegister: while the device takes its time to register the buffer of a
// long message, written or read, all else of the worker goes on, and a message that was
// given up meanwhile leaves nothing behind.
func TestWorkerDoesNotRegister(t *testing.T) {
	for _, get := range []bool{false, true} {
		f := sim.NewFabric(sim.Config{})
		dev, err := f.NewDevice("sim", sim.DeviceConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := testmodel.On(t, dev).Open()
		if err != nil {
			t.Fatal(err)
		}
		slow := &registering{Context: ctx, goOn: make(chan struct{})}
		p := &pair{fabric: f}
		p.nodes[0] = nodeIn(t, slow, be.Config{})
		_, p.nodes[1] = newNode(t, f, "peer", be.Config{})
		if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		server, client := p.connect(t, "long")
		if err := client.SetGet(get); err != nil {
			t.Fatal(err)
		}
		const long = 9 << 20
		short, cancel := context.WithCancel(limit(t))
		gone := make(chan error, 1)
		if err := client.PostContext(short, alloc(t, p.nodes[1], long+bemalloc.BlockBytes, 1), func(err error) { gone <- err }); err != nil {
			t.Fatal(err)
		}
		eventually(t, "memory is asked for", func() bool { return slow.asked.Load() == 1 })
		other, peer := p.connect(t, "other")
		for i := range 20 {
			exchange(t, other, peer, 100, byte(i))
			exchange(t, other, peer, 100_000, byte(i))
		}
		cancel()
		if err := <-gone; err == nil {
			t.Error("a message that was given up was sent")
		}
		var sent load
		sent.post(t, client, 3, long)
		exchange(t, other, peer, 100_000, 1)
		if n := sent.ended(); n != 0 || slow.asked.Load() > 2 {
			t.Errorf("%d messages were sent, %d buffers are being registered at once", n, slow.asked.Load())
		}
		close(slow.goOn)
		for i := range 3 {
			b, err := server.Recv(limit(t))
			if err != nil {
				t.Fatal(err)
			}
			check(t, b, long, byte(i))
			p.nodes[0].Free(b)
		}
		eventually(t, "all is given back", func() bool { return p.nodes[0].Stats().Memory.InUseBytes < bemalloc.BlockBytes })
	}
}
