package be_test

import (
	"errors"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// TestUnorderedSocket: a message that never gets memory does not hold up the next
// on an unordered socket, and is rejected when its time is over.
func TestUnorderedSocket(t *testing.T) {
	p := newPairOn(t, simDefaults, be.Config{PoolBytes: 8 << 20, HoldTimeout: 200 * time.Millisecond}, be.Config{})
	ctx := limit(t)
	client, err := p.nodes[1].DialWith(ctx, p.listener.Addr().String(), "rpc", be.SocketOptions{Unordered: true})
	if err != nil {
		t.Fatal(err)
	}
	server, err := p.listener.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !server.Unordered() || !client.Unordered() {
		t.Errorf("unordered: %v and %v", server.Unordered(), client.Unordered())
	}
	ended := make(chan error, 1)
	if err := client.Post(alloc(t, p.nodes[1], 64<<20, 1), func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	b := alloc(t, p.nodes[1], 100_000, 2)
	if err := client.Send(ctx, b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	m, err := server.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, 100_000, 2)
	p.nodes[0].Free(m)
	if err := <-ended; !errors.Is(err, be.ErrRejected) {
		t.Errorf("the message without memory ended with %v", err)
	}
	if st := p.nodes[1].Stats(); st.Rejected != 1 {
		t.Errorf("%d messages were rejected, want 1", st.Rejected)
	}
}
