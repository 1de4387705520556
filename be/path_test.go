package be_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// gidOf is an entry of a GID table.
func gidOf(index int, typ verbs.GIDType, host byte) sim.GID {
	g := sim.GID{GIDEntry: verbs.GIDEntry{GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 1, 14: byte(index), 15: host}, Index: index, Type: typ}}
	return g
}

// portNodes makes two nodes on one fabric, each on a port like this.
func portNodes(t *testing.T, cfg be.Config, ports ...sim.Port) (nodes [2]*be.Node) {
	t.Helper()
	f := sim.NewFabric(sim.Config{Segment: true})
	for i, p := range ports {
		dev, err := f.NewDevice(fmt.Sprintf("sim%d", i), sim.DeviceConfig{Ports: []sim.Port{p}})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = nodeOn(t, dev, cfg)
	}
	return nodes
}

// meet dials from one node to the other and, if that works, sends messages both ways.
func meet(t *testing.T, from, to *be.Node, sizes ...int) error {
	t.Helper()
	l, err := to.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx := limit(t)
	client, err := from.Dial(ctx, l.Addr().String(), "x")
	if err != nil {
		return err
	}
	server, err := l.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, size := range sizes {
		exchange(t, client, server, size, byte(i))
	}
	client.Close()
	server.Close()
	return nil
}

// Case C01: ports of different active MTU work at the lower one, by every size around
// it. The control, where each end programs its own, is of package sim.
func TestUnequalMTU(t *testing.T) {
	for _, c := range []struct{ a, b, override qp.MTU }{
		{qp.MTU4096, qp.MTU1024, 0}, {qp.MTU4096, qp.MTU4096, 0}, {qp.MTU2048, qp.MTU1024, 0}, {qp.MTU4096, qp.MTU1024, qp.MTU512},
	} {
		port := func(m qp.MTU) sim.Port { return sim.Port{PortAttr: verbs.PortAttr{ActiveMTU: m}} }
		nodes := portNodes(t, be.Config{MTU: c.override}, port(c.a), port(c.b))
		for _, way := range [][2]*be.Node{{nodes[0], nodes[1]}, {nodes[1], nodes[0]}} {
			if err := meet(t, way[0], way[1], 1, 1023, 1024, 1025, 4096, 65536, 1<<20); err != nil {
				t.Errorf("%v and %v: %v", c.a, c.b, err)
			}
		}
		for i, n := range nodes {
			if st := n.Stats(); st.Failures != 0 || st.RNR != 0 || st.Engines != 1 {
				t.Errorf("%v and %v: node %d: %+v", c.a, c.b, i, st.Stats)
			}
		}
	}
}

// Case C03: the best GIDs are of another container's interface, and the table does not
// tell. The next is taken, at most the third; RTR is never seen to fail by a peer. With
// the index chosen, which switches the search off, the dial fails.
func TestForeignGIDs(t *testing.T) {
	table := func(host byte, foreign ...int) (p sim.Port) {
		for i := range 5 {
			g := gidOf(i, verbs.GIDRoCEv2, host)
			for _, f := range foreign {
				g.Foreign = g.Foreign || f == i
			}
			p.GIDs = append(p.GIDs, g)
		}
		return p
	}
	nodes := portNodes(t, be.Config{}, table(1, 0, 1), table(2, 0))
	for _, way := range [][2]*be.Node{{nodes[0], nodes[1]}, {nodes[1], nodes[0]}} {
		if err := meet(t, way[0], way[1], 100000); err != nil {
			t.Error(err)
		}
	}
	nodes = portNodes(t, be.Config{}, table(3, 0, 1, 2), table(4))
	err := meet(t, nodes[0], nodes[1])
	if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "index 0 (::ffff:10.1.0.3), 1 (::ffff:10.1.1.3), 2 (::ffff:10.1.2.3)") {
		t.Errorf("none of three: %v", err)
	}
	if err := meet(t, nodes[1], nodes[0]); err == nil || !strings.Contains(err.Error(), "index 0 (") {
		t.Errorf("none of the listener's three: %v", err)
	}
	zero := 0
	nodes = portNodes(t, be.Config{GIDIndex: &zero}, table(5, 0, 1), table(6))
	if err := meet(t, nodes[0], nodes[1]); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("the chosen one: %v", err)
	}
}

// Case C04: RoCE v1 against v2. Ports that have one type in common settle on it; others
// fail in the hello, with both lists. No queue pair comes up that packets do not reach.
func TestRoCEVersions(t *testing.T) {
	port := func(host byte, types ...verbs.GIDType) (p sim.Port) {
		for i, typ := range types {
			p.GIDs = append(p.GIDs, gidOf(i, typ, host))
		}
		return p
	}
	const v1, v2 = verbs.GIDRoCEv1, verbs.GIDRoCEv2
	nodes := portNodes(t, be.Config{}, port(1, v1), port(2, v1, v2))
	for _, way := range [][2]*be.Node{{nodes[0], nodes[1]}, {nodes[1], nodes[0]}} {
		if err := meet(t, way[0], way[1], 5000, 100000); err != nil {
			t.Errorf("v1 and both: %v", err)
		}
	}
	for i, n := range nodes {
		if st := n.Stats(); st.Failures != 0 {
			t.Errorf("node %d: %+v", i, st.Stats)
		}
	}
	nodes = portNodes(t, be.Config{}, port(3, v1), port(4, v2))
	for _, way := range [][2]*be.Node{{nodes[0], nodes[1]}, {nodes[1], nodes[0]}} {
		err := meet(t, way[0], way[1])
		if !errors.Is(err, be.ErrRefused) || !strings.Contains(err.Error(), "RoCE v1") || !strings.Contains(err.Error(), "RoCE v2") || !strings.Contains(err.Error(), "GID types differ") {
			t.Errorf("v1 and v2: %v", err)
		}
	}
	// The policy of one type by its index: the other end follows, or is refused.
	one := 1
	nodes = portNodes(t, be.Config{GIDIndex: &one}, port(5, v1, v1), port(6, v1, v2))
	if err := meet(t, nodes[0], nodes[1]); !errors.Is(err, be.ErrRefused) || !strings.Contains(err.Error(), "GIDIndex") {
		t.Errorf("types chosen by index: %v", err)
	}
}
