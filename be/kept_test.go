package be_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

// TestEndBehindPackedMessages: the queue pair of a node that is out of memory breaks, or the
// peer is gone, with short messages that had arrived together and wait. All are delivered,
// then the socket ends. A dial does not wait for that: there is a new engine, or it is told
// what is missing.
func TestEndBehindPackedMessages(t *testing.T) {
	for _, how := range []string{"queue pair", "line"} {
		t.Run(how, func(t *testing.T) { endBehindPacked(t, how) })
	}
}

func endBehindPacked(t *testing.T, how string) {
	p := &pair{fabric: sim.NewFabric(sim.Config{})}
	dev, err := p.fabric.NewDevice("sim", sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := spyOn(t, testmodel.On(t, dev))
	cfg := be.Config{PoolBytes: 12 << 20, Linger: time.Hour}
	p.nodes[0] = nodeIn(t, s, cfg)
	_, p.nodes[1] = newNode(t, p.fabric, "peer", be.Config{})
	if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	x := newProxy(t, p.listener.Addr().String())
	server, client := p.connectBy(t, x.addr, "x")
	var all [][]byte
	for _, size := range []int{1 << 20, 64 << 10, 4096, 512, 64} {
		for b, err := p.nodes[0].Alloc(size); err == nil; b, err = p.nodes[0].Alloc(size) {
			all = append(all, b)
		}
	}
	open := make(chan struct{})
	first := alloc(t, p.nodes[1], 0, 0)
	if err := client.Post(first, func(error) { <-open; p.nodes[1].Free(first) }); err != nil {
		t.Fatal(err)
	}
	if b, err := server.Recv(limit(t)); err != nil || len(b) != 0 {
		t.Fatalf("%d bytes, %v", len(b), err)
	} else {
		all = append(all, b)
	}
	const n = 12
	var sent load
	sent.post(t, client, n, 64)
	close(open)
	eventually(t, "the messages wait", func() bool { return p.nodes[0].Stats().Waiting > 0 && sent.ended() == n })
	waiting := p.nodes[0].Stats().Waiting
	if how == "line" {
		x.reset()
	} else {
		for _, q := range s.made() {
			q.Modify(&qp.Attr{State: qp.Err}, qp.MaskState)
		}
	}
	eventually(t, "the engines failed", func() bool { return client.Err() != nil })
	if _, err := p.nodes[1].Dial(limit(t), p.listener.Addr().String(), "y"); err == nil {
		if _, err = p.listener.Accept(limit(t)); err != nil {
			t.Error(err)
		}
	} else if !strings.Contains(err.Error(), bemalloc.ErrLimit.Error()) {
		t.Errorf("a dial while messages wait: %v", err)
	}
	for _, b := range all {
		p.nodes[0].Free(b)
	}
	for i := range n {
		b, err := server.Recv(limit(t))
		if err != nil {
			t.Fatalf("message %d, %d waited: %v", i, waiting, err)
		}
		check(t, b, 64, byte(i))
		p.nodes[0].Free(b)
	}
	if _, err := server.Recv(limit(t)); err == nil || errors.Is(err, be.ErrDropped) {
		t.Errorf("the socket ended with %v", err)
	}
	next, peer := p.connect(t, "z")
	exchange(t, next, peer, 64, 1)
}
