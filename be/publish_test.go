package be_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// TestPublish: a published buffer is written to many times, with no allocation, and
// ends with its socket.
func TestPublish(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "tensor")
	ctx := limit(t)
	const size = 300_000
	b := alloc(t, p.nodes[0], size, 0)
	pub, err := server.Publish(b)
	if err != nil {
		t.Fatal(err)
	}
	m := alloc(t, p.nodes[1], size, 0)
	ended := make(chan error, 1)
	done := func(err error) { ended <- err }
	put := func() {
		if err := client.PostPut(pub.Token(), m, done); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if _, err := pub.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		fill(m, byte(i))
		put()
		check(t, b, size, byte(i))
	}
	if !checked() {
		if n := testing.AllocsPerRun(200, put); n != 0 {
			t.Errorf("%v allocations a write", n)
		}
	}
	if st := p.nodes[0].Stats(); st.Written != pub.Writes() || st.Written < 50 || p.nodes[1].Stats().Puts != st.Written {
		t.Errorf("%d writes counted, %d told of", st.Written, pub.Writes())
	}
	_, other := p.connect(t, "another")
	o := alloc(t, p.nodes[1], 10, 0)
	if err := other.PostPut(pub.Token(), o, done); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, be.ErrToken) {
		t.Errorf("the token of another socket: %v", err)
	}
	var bad be.Token
	bad[23], bad[31] = 0xff, 0xff
	if err := client.PostPut(bad, m, done); !errors.Is(err, be.ErrProtocol) {
		t.Errorf("a token that is none: %v", err)
	}
	if _, err := pub.Wait(expired()); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with nothing written: %v", err)
	}
	client.Close()
	if _, err := pub.Wait(ctx); !errors.Is(err, be.ErrPeerClosed) {
		t.Errorf("after close: %v", err)
	}
	<-pub.Done()
	p.nodes[0].Free(b)
	p.nodes[1].Free(m)
	<-server.Done()
	if _, err := server.Publish(nil); !errors.Is(err, be.ErrPeerClosed) {
		t.Errorf("publish on a closed socket: %v", err)
	}
}

// TestPublishNothing: a buffer of no bytes tells of writes of no bytes; memory that is
// not the node's is refused.
func TestPublishNothing(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "bell")
	b := alloc(t, p.nodes[0], 0, 0)
	pub, err := server.Publish(b)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	if err := client.PostPut(pub.Token(), alloc(t, p.nodes[1], 1, 0), func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, be.ErrTooLarge) {
		t.Errorf("a write of one byte: %v", err)
	}
	if err := client.PostPut(pub.Token(), nil, func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("a write of no bytes: %v", err)
	}
	if n, err := pub.Wait(limit(t)); n != 1 || err != nil {
		t.Errorf("%d writes, %v", n, err)
	}
	for _, foreign := range [][]byte{nil, make([]byte, 8)} {
		if _, err := server.Publish(foreign); !errors.Is(err, be.ErrNotRegistered) {
			t.Errorf("publish %v: %v", foreign, err)
		}
	}
	p.devs[0].RefuseRegistrations(-1)
	m := alloc(t, p.nodes[0], 100, 0)
	if _, err := server.Publish(m); err == nil || !strings.Contains(err.Error(), "publish 100 bytes") {
		t.Errorf("a device that registers nothing more: %v", err)
	}
	p.devs[0].RefuseRegistrations(0)
	server.Close()
	<-pub.Done()
	p.nodes[0].Free(b)
	p.nodes[0].Free(m)
}

// A buffer that the peer writes to without asking, for data of a known size.
func ExampleSocket_Publish() {
	ctx := context.Background()
	nodes, end := newNodes()
	defer end()
	l, err := nodes[0].Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	writer, err := nodes[1].Dial(ctx, l.Addr().String(), "weights")
	if err != nil {
		log.Fatal(err)
	}
	reader, err := l.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}

	buf, err := nodes[0].Alloc(4)
	if err != nil {
		log.Fatal(err)
	}
	pub, err := reader.Publish(buf)
	if err != nil {
		log.Fatal(err)
	}
	token := pub.Token() // to be sent to the writer once, in a message

	b, err := nodes[1].Alloc(4)
	if err != nil {
		log.Fatal(err)
	}
	for _, word := range []string{"one.", "two."} {
		copy(b, word)
		done := make(chan error, 1)
		if err := writer.PostPut(token, b, func(err error) { done <- err }); err != nil {
			log.Fatal(err)
		}
		if err := <-done; err != nil {
			log.Fatal(err) // b is gone
		}
		n, err := pub.Wait(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s\n", n, buf)
	}
	nodes[1].Free(b)
	writer.Close()
	<-pub.Done() // buf is wholly ours again
	nodes[0].Free(buf)
	// Output:
	// 1: one.
	// 2: two.
}
