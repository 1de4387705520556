package be_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// TestSharedQueueFails: the device gives the shared receive queue up, with messages
// under way. Each of them ends once, sockets end, memory is as before, and the next
// dial gets a queue that works. Again and again, as the first replacement is no special
// case. The control does not fail it: then nothing ends. Linux's rxe cannot show it: its
// driver has no such event (drivers/infiniband/sw/rxe raises SRQ_LIMIT_REACHED alone of them).
func TestSharedQueueFails(t *testing.T) {
	for _, fails := range []bool{true, false} {
		h := &hub{fabric: sim.NewFabric(sim.Config{})}
		hubDev, node := newNode(t, h.fabric, "hub", be.Config{SharedReceives: 32, RecvDepth: 4})
		_, peer := newNode(t, h.fabric, "peer", be.Config{})
		h.node, h.peers = node, []*be.Node{peer}
		var err error
		if h.listener, err = node.Listen("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		before := h.node.Stats().Memory.InUseBytes
		for round := range 3 {
			server, client := h.dial(t, 0)
			burst(t, []*be.Socket{server}, []*be.Socket{client}, 20)
			var posted, ended, twice atomic.Int64
			for range 200 {
				b := alloc(t, client.Node(), 3000, 1)
				var once atomic.Bool
				posted.Add(1)
				if err := client.Post(b, func(err error) {
					if !once.CompareAndSwap(false, true) {
						twice.Add(1)
					}
					if err == nil {
						client.Node().Free(b)
					}
					ended.Add(1)
				}); err != nil {
					t.Fatal(err)
				}
			}
			if !fails {
				for range 200 {
					b, err := server.Recv(limit(t))
					if err != nil {
						t.Fatal(err)
					}
					node.Free(b)
				}
				break
			}
			hubDev.FailSharedReceives()
			for _, s := range []*be.Socket{server, client} {
				for {
					b, err := s.Recv(limit(t))
					if err != nil {
						break
					}
					s.Node().Free(b)
				}
			}
			eventually(t, "each message ended", func() bool { return ended.Load() == posted.Load() })
			if twice.Load() != 0 {
				t.Errorf("round %d: %d messages ended twice", round, twice.Load())
			}
			eventually(t, "engines are down, memory is as before", func() bool {
				st := h.node.Stats()
				return st.Engines == 0 && st.Memory.InUseBytes <= before
			})
			eventually(t, "the node knows of the queue", node.SharedFailed)
		}
		if st := h.node.Stats(); st.ProtocolErrors != 0 || fails != (st.Engines == 0) {
			t.Errorf("%d protocol errors, %d engines", st.ProtocolErrors, st.Engines)
		}
	}
}

// TestSharedQueueFailsAtRest: without a message under way only the device's event tells of
// it, and the engines end by that, with its name.
func TestSharedQueueFailsAtRest(t *testing.T) {
	h := &hub{fabric: sim.NewFabric(sim.Config{})}
	dev, node := newNode(t, h.fabric, "hub", be.Config{SharedReceives: 32, RecvDepth: 4, Keepalive: -1})
	_, peer := newNode(t, h.fabric, "peer", be.Config{Keepalive: -1})
	h.node, h.peers = node, []*be.Node{peer}
	var err error
	if h.listener, err = node.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server, client := h.dial(t, 0)
	burst(t, []*be.Socket{server}, []*be.Socket{client}, 20)
	dev.FailSharedReceives()
	if _, err := server.Recv(limit(t)); err == nil || !strings.Contains(err.Error(), verbs.EventSRQError.String()) {
		t.Errorf("the socket ended with %v", err)
	}
	if _, err := client.Recv(limit(t)); err == nil {
		t.Error("the peer has a message")
	}
}
