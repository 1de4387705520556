package be_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// TestGetIncast: several nodes offer large messages to one, which reads them through
// a bound over all its engines. All arrive, by READs alone; one that is given up
// costs nothing but itself.
func TestGetIncast(t *testing.T) {
	const senders, messages, size = 3, 15, 700_001
	f := sim.NewFabric(sim.Config{})
	_, to := newNode(t, f, "to", be.Config{NodeWindowBytes: 128 << 10})
	l, err := to.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx := limit(t)
	var wg sync.WaitGroup
	for i := range senders {
		_, from := newNode(t, f, fmt.Sprintf("from%d", i), be.Config{})
		client, err := from.Dial(ctx, l.Addr().String(), "incast")
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.SetGet(true); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for k := range messages {
				b, err := from.Alloc(size)
				if err != nil {
					t.Error(err)
					return
				}
				fill(b, byte(k+i))
				if err := client.Send(ctx, b); err != nil {
					t.Errorf("message %d: %v", k, err)
					return
				}
				from.Free(b)
			}
			if st := from.Stats(); st.Offered != messages || st.Fragments != 0 {
				t.Errorf("%d messages were read by the peer, %d fragments written", st.Offered, st.Fragments)
			}
			b, err := from.Alloc(size)
			if err != nil {
				t.Error(err)
				return
			}
			soon, cancel := context.WithCancel(ctx)
			go cancel()
			if err := client.Send(soon, b); err == nil {
				from.Free(b)
			} else if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			client.Close()
		})
		wg.Go(func() {
			for k := range messages + 1 {
				m, err := server.Recv(ctx)
				if err != nil {
					if k < messages || !errors.Is(err, be.ErrPeerClosed) {
						t.Errorf("message %d: %v", k, err)
					}
					return
				}
				if k < messages {
					check(t, m, size, byte(k+i))
				}
				to.Free(m)
			}
		})
	}
	wg.Wait()
	if st := to.Stats(); st.Reads == 0 || st.ReadBytes < senders*messages*size || st.CapStalls == 0 {
		t.Errorf("%d READs of %d bytes, %d waits for the bound", st.Reads, st.ReadBytes, st.CapStalls)
	}
}
