package be_test

import (
	"context"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// Nodes without a port in their configuration use the best one: here the second, for
// the first is down. Control: with the first they cannot connect.
func TestBestPort(t *testing.T) {
	for port, works := range map[int]bool{0: true, 2: true, 1: false} {
		fabric := sim.NewFabric(sim.Config{})
		var nodes [2]*be.Node
		for i := range nodes {
			down := sim.Port{PortAttr: verbs.PortAttr{State: verbs.PortDown}}
			dev, err := fabric.NewDevice(string(rune('a'+i)), sim.DeviceConfig{Ports: []sim.Port{down, {}}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, err := dev.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer ctx.Close()
			if nodes[i], err = be.NewNode(ctx, be.Config{Port: port}); err != nil {
				t.Fatal(err)
			}
		}
		l, err := nodes[1].Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nodes[0].Dial(context.Background(), l.Addr().String(), "x"); (err == nil) != works {
			t.Errorf("port %d: %v", port, err)
		}
		for _, n := range nodes {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := fabric.Close(); err != nil {
			t.Error(err)
		}
	}
}
