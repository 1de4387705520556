package be_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// slowDevice takes its time to make a queue pair, as real devices do, and each time
// another.
type slowDevice struct{ verbs.Device }

func (d slowDevice) Open() (verbs.Context, error) {
	c, err := d.Device.Open()
	return slowContext{c}, err
}

type slowContext struct{ verbs.Context }

func (c slowContext) AllocPD() (verbs.PD, error) {
	pd, err := c.Context.AllocPD()
	return slowPD{pd}, err
}

type slowPD struct{ verbs.PD }

func (p slowPD) CreateQP(cfg verbs.QPConfig) (qp.QP, error) {
	time.Sleep(rand.N(3 * time.Millisecond))
	return p.PD.CreateQP(cfg)
}

// Two nodes dial each other at once. Whichever direction gives way, and at
// whatever step, both dials end with a socket.
func TestCrossingDials(t *testing.T) {
	for round := range 40 {
		t.Run(strconv.Itoa(round), crossingDials)
	}
}

func crossingDials(t *testing.T) {
	fabric := sim.NewFabric(sim.Config{})
	var nodes [2]*be.Node
	var listeners [2]*be.Listener
	for i, name := range []string{"a", "b"} {
		dev, err := fabric.NewDevice(name, sim.DeviceConfig{})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = nodeOn(t, slowDevice{dev}, be.Config{})
		if listeners[i], err = nodes[i].Listen("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	ctx := limit(t)
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if _, err := n.Dial(ctx, listeners[1-i].Addr().String(), "x"); err != nil {
				t.Errorf("node %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}
