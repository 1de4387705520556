package be_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/provider"
)

// newDevicePair makes two nodes on the device that the tests may use, each with
// a context of its own. They are closed, and hold nothing, when the test ends.
func newDevicePair(t *testing.T, cfg be.Config) *pair {
	t.Helper()
	name := testdev.Name(t)
	p := &pair{}
	for i := range p.nodes {
		dev, err := provider.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		p.nodes[i] = nodeOn(t, dev, cfg)
	}
	var err error
	if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDeviceSizes(t *testing.T) {
	p := newDevicePair(t, be.Config{})
	server, client := p.connect(t, "sizes")
	for i, size := range []int{0, 1, 64, 1000, 4096, 4097, 8192, 8193, 65536, 65537, 1<<20 + 1, 4 << 20} {
		exchange(t, client, server, size, byte(i))
	}
	for i, n := range p.nodes {
		if st := n.Stats(); st.RNR != 0 || st.Failures != 0 || st.Copies != 0 {
			t.Errorf("node %d: %+v", i, st.Stats)
		}
	}
}

// TestDeviceManySockets has 16 sockets on one queue pair ask and answer at once,
// from blocked workers, so that arming and events are used.
func TestDeviceManySockets(t *testing.T) {
	p := newDevicePair(t, be.Config{})
	echo(t, p.nodes[0], p.listener)
	ctx := limit(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			s, err := p.nodes[1].Dial(ctx, p.listener.Addr().String(), fmt.Sprint(i))
			if err != nil {
				t.Error(err)
				return
			}
			for k := range 20 {
				size := (k * 2741 * (i + 1)) % 30000
				b := alloc(t, p.nodes[1], size, byte(k))
				if err := s.Send(ctx, b); err != nil {
					t.Errorf("socket %d: send: %v", i, err)
					return
				}
				p.nodes[1].Free(b)
				got, err := s.Recv(ctx)
				if err != nil {
					t.Errorf("socket %d: receive: %v", i, err)
					return
				}
				check(t, got, size, byte(k))
				p.nodes[1].Free(got)
			}
			s.Close()
		})
	}
	wg.Wait()
	if st := p.nodes[1].Stats(); st.Engines != 1 || st.RNR != 0 || st.Failures != 0 {
		t.Errorf("%d engines, stats %+v", st.Engines, st.Stats)
	}
}

// TestDevicePeerLost: the bootstrap connection is reset under load; everything is
// flushed and given back, and the next dial is served by a new engine.
func TestDevicePeerLost(t *testing.T) {
	p := newDevicePair(t, be.Config{})
	x := newProxy(t, p.listener.Addr().String())
	for range 3 {
		server, client := p.connectBy(t, x.addr, "lost")
		var up traffic
		up.start(t, p.nodes[1], client)
		errs := make(chan error, 1)
		go func() { errs <- sink(p.nodes[0], server) }()
		eventually(t, "traffic", func() bool { return up.done.Load() > 20 })
		x.reset()
		if err := <-errs; err == nil {
			t.Error("the receiver heard no error")
		}
		up.wg.Wait()
		eventually(t, "every message ends", func() bool { return up.posted.Load() == up.done.Load() })
		client.Close()
		server.Close()
		eventually(t, "no engine left", func() bool { return p.nodes[0].Stats().Engines+p.nodes[1].Stats().Engines == 0 })
	}
}

// TestDeviceGetAndPublish: messages that the peer reads, and a published buffer, on
// the device; and the same with the adaptive window and the bound of the node.
func TestDeviceGetAndPublish(t *testing.T) {
	for _, cfg := range []be.Config{{}, {WindowTarget: time.Millisecond, NodeWindowBytes: 128 << 10}} {
		p := newDevicePair(t, cfg)
		server, client := p.connect(t, "get")
		ctx := limit(t)
		if err := client.SetGet(true); err != nil {
			t.Fatal(err)
		}
		buf := alloc(t, p.nodes[0], 1<<20, 0)
		pub, err := server.Publish(buf)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		for i, size := range []int{8193, 65536, 65537, 1 << 20} {
			b := alloc(t, p.nodes[1], size, byte(i))
			if err := client.Send(ctx, b); err != nil {
				t.Fatalf("send %d bytes: %v", size, err)
			}
			got, err := server.Recv(ctx)
			if err != nil {
				t.Fatalf("receive %d bytes: %v", size, err)
			}
			check(t, got, size, byte(i))
			p.nodes[0].Free(got)
			if err := client.PostPut(pub.Token(), b, func(err error) { ended <- err }); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatalf("put %d bytes: %v", size, err)
			}
			if _, err := pub.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			check(t, buf[:size], size, byte(i))
			p.nodes[1].Free(b)
		}
		if st := p.nodes[1].Stats(); st.Offered != 4 || st.Puts != 4 || st.RNR != 0 || st.Failures != 0 {
			t.Errorf("stats %+v", st.Stats)
		}
		client.Close()
		<-pub.Done()
		p.nodes[0].Free(buf)
	}
}
