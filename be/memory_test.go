package be_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// TestReceiverOutOfMemory: with a pool that holds few messages, senders wait
// until the application frees what it took; nothing is lost, and no poll is
// needed to go on.
func TestReceiverOutOfMemory(t *testing.T) {
	p := newPairOn(t, simDefaults, be.Config{PoolBytes: 12 << 20}, be.Config{})
	server, client := p.connect(t, "tight")
	ctx := limit(t)
	const n, size = 40, 1 << 20
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			b := alloc(t, p.nodes[1], size, byte(i))
			if !postFreed(t, p.nodes[1], client, b) {
				return
			}
		}
	})
	eventually(t, "a message is held back", func() bool { return p.nodes[0].Stats().Held > 0 })
	for i := range n {
		b, err := server.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		check(t, b, size, byte(i))
		p.nodes[0].Free(b)
	}
	wg.Wait()
}

// TestPoolBytesAreShared: what was free for messages to send is there for those that
// come in, and the other way round, within one bound.
func TestPoolBytesAreShared(t *testing.T) {
	const most, size = 12 << 20, 8 << 20
	p := newPairOn(t, simDefaults, be.Config{PoolBytes: most}, be.Config{})
	server, client := p.connect(t, "shared")
	for i := range 3 {
		exchange(t, server, client, size, byte(i))
		if n := p.nodes[0].Stats().Memory.RegisteredBytes; n > most {
			t.Errorf("%d bytes are registered, the bound is %d", n, most)
		}
	}
	exchange(t, server, client, 100, 9)
}

// TestGetWithoutReadableMemory: with no room for a block that peers may read, what is
// to be offered is written.
func TestGetWithoutReadableMemory(t *testing.T) {
	p := newPairOn(t, simDefaults, be.Config{}, be.Config{PoolBytes: 4 << 20})
	server, client := p.connect(t, "tight")
	if err := client.SetGet(true); err != nil {
		t.Fatal(err)
	}
	b := alloc(t, p.nodes[1], 100_000, 1)
	if err := client.Send(limit(t), b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	m, err := server.Recv(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, 100_000, 1)
	p.nodes[0].Free(m)
	if st := p.nodes[1].Stats(); st.Rendezvous != 1 || st.Offered != 0 || st.Registered.Readable != 0 {
		t.Errorf("%d messages were written, %d read, %d bytes are readable", st.Rendezvous, st.Offered, st.Registered.Readable)
	}
}

// TestRegistrationRefused: a device that registers nothing more (case C07) fails
// the allocation with its reason, and the node goes on.
func TestRegistrationRefused(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "x")
	p.devs[1].RefuseRegistrations(-1)
	if _, err := p.nodes[1].Alloc(64 << 20); err == nil {
		t.Error("an allocation beyond what is registered went well")
	}
	b := alloc(t, p.nodes[1], 1000, 1)
	if err := client.Send(limit(t), b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	got, err := server.Recv(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	p.nodes[0].Free(got)
	// The receiver lacks memory: the sender's deadline ends the wait.
	p.devs[1].RefuseRegistrations(-1)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	big := alloc(t, p.nodes[0], 64<<20, 2)
	if err := server.Send(ctx, big); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("send to a receiver without memory: %v", err)
	}
	p.devs[1].RefuseRegistrations(0)
}
