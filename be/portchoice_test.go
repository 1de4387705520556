package be_test

import (
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
		t.Cleanup(func() {
			if err := fabric.Close(); err != nil {
				t.Error(err)
			}
		})
		var nodes [2]*be.Node
		for i := range nodes {
			down := sim.Port{PortAttr: verbs.PortAttr{State: verbs.PortDown}}
			dev, err := fabric.NewDevice(string(rune('a'+i)), sim.DeviceConfig{Ports: []sim.Port{down, {}}})
			if err != nil {
				t.Fatal(err)
			}
			nodes[i] = nodeOn(t, dev, be.Config{Port: port})
		}
		if err := meet(t, nodes[0], nodes[1], 1000); (err == nil) != works {
			t.Errorf("port %d: %v", port, err)
		}
	}
}
