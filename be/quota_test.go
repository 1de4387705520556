package be_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// post has n messages of size bytes on their way, and counts those that were delivered.
func post(t *testing.T, s *be.Socket, n, size int, delivered *atomic.Int64) {
	t.Helper()
	for i := range n {
		b := alloc(t, s.Node(), size, byte(i))
		if err := s.Post(b, func(err error) {
			if err != nil {
				t.Errorf("post: %v", err)
				return
			}
			s.Node().Free(b)
			delivered.Add(1)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreadSocketStarvesNobody: by default a socket that nobody reads holds a sixteenth of
// the node's quota, and the large messages of others pass as if it was not there; when
// it is read at last, all of its messages come, each as soon as there is room. In the
// control, with all the quota for each, it takes that and the others get nothing.
func TestUnreadSocketStarvesNobody(t *testing.T) {
	const quota, size, n = 8 << 20, 100_000, 100
	for _, tt := range []struct {
		name   string
		cfg    be.Config
		holds  int64
		passes bool
	}{
		{"of the quota", be.Config{RecvQuotaBytes: quota}, quota / 16 / size, true},
		{"of the pool", be.Config{PoolBytes: 32 << 20}, 32 << 20 / 16 / size, true},
		{"chosen", be.Config{RecvQuotaBytes: quota, SocketQuotaBytes: 1 << 20}, 1 << 20 / size, true},
		{"control", be.Config{RecvQuotaBytes: quota, SocketQuotaBytes: quota}, quota / size, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPairOn(t, simDefaults, tt.cfg, be.Config{})
			unread, sender := p.connect(t, "unread")
			server, client := p.connect(t, "neighbour")
			var delivered atomic.Int64
			post(t, sender, n, size, &delivered)
			eventually(t, "the unread socket is full", func() bool {
				st := p.nodes[0].Stats()
				return st.Waiting == n-uint64(tt.holds) && delivered.Load() == tt.holds
			})
			if tt.passes {
				for i := range 50 {
					exchange(t, server, client, 1<<20, byte(i))
				}
			} else {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				if err := client.Send(ctx, alloc(t, p.nodes[1], 1<<20, 0)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a neighbour's message: %v", err)
				}
			}
			if got := delivered.Load(); got != tt.holds {
				t.Errorf("%d messages are in the unread socket, want %d", got, tt.holds)
			}
			ctx := limit(t)
			for i := range n {
				b, err := unread.Recv(ctx)
				if err != nil {
					t.Fatal(err)
				}
				check(t, b, size, byte(i))
				p.nodes[0].Free(b)
			}
		})
	}
}

// TestLongMessagePassesUnreadSocket: a message that is longer than the quota of the node
// comes in though a socket is full and nobody reads it. In the control, with more for each
// socket, it waits.
func TestLongMessagePassesUnreadSocket(t *testing.T) {
	for _, socket := range []int{0, 1 << 20} {
		p := newPair(t, be.Config{RecvQuotaBytes: 8 << 20, SocketQuotaBytes: socket})
		unread, sender := p.connect(t, "unread")
		server, client := p.connect(t, "long")
		var delivered atomic.Int64
		post(t, sender, 16, 100_000, &delivered)
		eventually(t, "the unread socket is full", func() bool { return p.nodes[0].Stats().Waiting > 0 })
		ctx, cancel := limit(t), func() {}
		if socket > 0 {
			ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
		}
		b := alloc(t, p.nodes[1], 20<<20, 7)
		if err := client.Send(ctx, b); (err == nil) != (socket == 0) {
			t.Errorf("%d bytes a socket: a long message: %v", socket, err)
		} else if err == nil {
			p.nodes[1].Free(b)
			b, err := server.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			check(t, b, 20<<20, 7)
			p.nodes[0].Free(b)
		}
		cancel()
		for range 16 {
			b, err := unread.Recv(limit(t))
			if err != nil {
				t.Fatal(err)
			}
			p.nodes[0].Free(b)
		}
	}
}

// TestLongestMessage: a message of 2 GiB less a byte, more than the whole quota, arrives
// beside a socket that nobody reads. BE_FULL=1 has it run: it takes 4 GiB of memory.
func TestLongestMessage(t *testing.T) {
	if os.Getenv("BE_FULL") == "" {
		t.Skip("takes 4 GiB of memory: BE_FULL=1 has it run")
	}
	p := newPair(t, be.Config{PeerTimeout: -1}) // a worker without memory may answer late
	unread, sender := p.connect(t, "unread")
	server, client := p.connect(t, "long")
	var delivered atomic.Int64
	post(t, sender, 1, 1<<20, &delivered)
	b, err := p.nodes[1].Alloc(be.DefaultMaxMessage)
	if err != nil {
		t.Fatal(err)
	}
	marks := []int{0, 1 << 30, be.DefaultMaxMessage - 1}
	for i, at := range marks {
		b[at] = byte(i + 1)
	}
	if err := client.Send(limit(t), b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	for i, s := range []*be.Socket{server, unread} {
		b, err := s.Recv(limit(t))
		if err != nil {
			t.Fatal(err)
		}
		for k, at := range marks {
			if i == 0 && (len(b) != be.DefaultMaxMessage || b[at] != byte(k+1)) {
				t.Errorf("%d bytes arrived, at %d is %d", len(b), at, b[at])
			}
		}
		p.nodes[0].Free(b)
	}
}
