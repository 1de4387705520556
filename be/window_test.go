package be_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// TestNodeWindow: one node sends large messages to several others at once, through
// a bound over all its engines that is one fragment, and with adaptive windows. All
// arrives, and the engines had to wait for each other.
func TestNodeWindow(t *testing.T) {
	const peers, messages, size = 3, 20, 1 << 20
	f := sim.NewFabric(sim.Config{})
	_, from := newNode(t, f, "from", be.Config{NodeWindowBytes: 64 << 10, WindowTarget: time.Millisecond})
	var wg sync.WaitGroup
	for i := range peers {
		_, to := newNode(t, f, fmt.Sprintf("to%d", i), be.Config{})
		l, err := to.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		client, err := from.Dial(limit(t), l.Addr().String(), "window")
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept(limit(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx := limit(t)
		wg.Go(func() {
			for k := range messages {
				b, err := from.Alloc(size)
				if err != nil {
					t.Error(err)
					return
				}
				fill(b, byte(k+i))
				if err := client.Post(b, func(err error) {
					if err == nil {
						from.Free(b)
					} else {
						t.Errorf("message %d: %v", k, err)
					}
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			for k := range messages {
				m, err := server.Recv(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				check(t, m, size, byte(k+i))
				to.Free(m)
			}
		})
	}
	wg.Wait()
	if st := from.Stats(); st.CapStalls == 0 || st.Rendezvous != peers*messages {
		t.Errorf("%d messages, %d waits for the bound", st.Rendezvous, st.CapStalls)
	}
}

// TestInbound: several nodes send large messages to one that has them take turns, over
// two workers. All arrive, some had to wait, and each node knows what the other expects.
func TestInbound(t *testing.T) {
	const peers, messages, size = 4, 20, 200_000
	f := sim.NewFabric(sim.Config{})
	adaptive := be.Config{WindowTarget: time.Millisecond, Workers: 2, FragmentBytes: 16 << 10, InboundBytes: 256 << 10}
	_, to := newNode(t, f, "to", adaptive)
	l, err := to.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range peers {
		_, from := newNode(t, f, fmt.Sprintf("from%d", i), adaptive)
		client, err := from.Dial(limit(t), l.Addr().String(), "inbound")
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept(limit(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx := limit(t)
		for k := range messages {
			b, err := from.Alloc(size)
			if err != nil {
				t.Fatal(err)
			}
			fill(b, byte(k+i))
			if err := client.Post(b, func(err error) {
				if err == nil {
					from.Free(b)
				} else {
					t.Errorf("message %d: %v", k, err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		wg.Go(func() {
			for k := range messages {
				m, err := server.Recv(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				check(t, m, size, byte(k+i))
				to.Free(m)
			}
		})
	}
	wg.Wait()
	if st := to.Stats(); st.Queued == 0 || st.Received < peers*messages {
		t.Errorf("%d messages arrived, %d waited for others", st.Received, st.Queued)
	}
}
