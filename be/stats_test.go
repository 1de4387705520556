package be_test

import (
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// TestEngineStats: the counts of the engines are those of the node, each by itself.
func TestEngineStats(t *testing.T) {
	p := newPair(t, be.Config{Workers: 2})
	for i := range 4 {
		server, client := p.connect(t, "counted")
		for range i + 1 {
			exchange(t, client, server, 100, 1)
		}
	}
	engines, node := p.nodes[1].EngineStats(), p.nodes[1].Stats()
	pairs := map[[2]int]bool{}
	for _, e := range engines {
		pairs[[2]int{e.Worker, e.Lane}] = true
	}
	if len(engines) != 4 || len(pairs) != 4 || engines[0].QP == engines[1].QP {
		t.Fatalf("engines %+v", engines)
	}
	var sent, doorbells uint64
	for _, e := range engines {
		if e.Sockets != 1 || e.Peer == "" || e.Eager == 0 || e.Eager == 10 {
			t.Errorf("engine %+v", e)
		}
		sent, doorbells = sent+e.Eager, doorbells+e.Doorbells
	}
	if sent != 10 || node.Eager != 10 || doorbells != node.Doorbells || node.Engines != 4 {
		t.Errorf("%d messages and %d doorbells of the engines; node %+v", sent, doorbells, node)
	}
	if err := p.nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	if after := p.nodes[1].EngineStats(); len(after) != 0 || p.nodes[1].Stats().Eager != 10 {
		t.Errorf("after Close: engines %+v, %d messages in all", after, p.nodes[1].Stats().Eager)
	}
}
