package be_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cq"
)

// TestExpose: exposed memory is read many times, whole and in part, with no allocation and
// no message; what Set stores is seen.
func TestExpose(t *testing.T) {
	p := newPair(t, be.Config{})
	_, client := p.connect(t, "tensor")
	const size = 300_000
	b := alloc(t, p.nodes[0], size, 0)
	fill(b, 7)
	x, err := p.nodes[0].Expose(b)
	if err != nil {
		t.Fatal(err)
	}
	token, m := x.Token(), alloc(t, p.nodes[1], size, 0)
	before := p.nodes[0].Stats()
	read := func() {
		if err := client.Read(context.Background(), &token, 0, m); err != nil {
			t.Fatal(err)
		}
	}
	read()
	check(t, m, size, 7)
	if !checked() {
		if n := testing.AllocsPerRun(200, read); n != 0 {
			t.Errorf("%v allocations a read", n)
		}
	}
	if err := x.Set(8, 0x1122334455667788); err != nil {
		t.Fatal(err)
	}
	if err := client.Read(limit(t), &token, 8, m[:8]); err != nil || m[0] != 0x88 || m[7] != 0x11 {
		t.Errorf("% x, %v", m[:8], err)
	}
	for _, at := range []int{-8, 4, size - 4} {
		if x.Set(at, 1) == nil {
			t.Errorf("set at %d", at)
		}
	}
	after := p.nodes[0].Stats()
	if after.Sends-after.CreditMessages != before.Sends-before.CreditMessages || after.Received != before.Received || p.nodes[1].Stats().Fetches < 2 {
		t.Errorf("the owner sent %d messages and received %d", after.Sends-before.Sends, after.Received-before.Received)
	}
	p.nodes[1].Free(m)
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if err := x.Set(8, 1); !errors.Is(err, be.ErrClosed) || b[8] != 0x88 {
		t.Errorf("set after Close: %v, % x", err, b[8:16])
	}
	p.nodes[0].Free(b)
}

// TestExposedToNobodyElse: tokens that are cut, made up, of another node or too late give
// errors; those that the device has to find end the reader's engine, and no other.
func TestExposedToNobodyElse(t *testing.T) {
	p := newPair(t, be.Config{})
	_, other := newNode(t, p.fabric, "sim2", be.Config{})
	bystander, err := other.Dial(limit(t), p.listener.Addr().String(), "bystander")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.listener.Accept(limit(t)); err != nil {
		t.Fatal(err)
	}
	b := alloc(t, p.nodes[0], 100, 0)
	x, err := p.nodes[0].Expose(b)
	if err != nil {
		t.Fatal(err)
	}
	good := x.Token()
	spoilt := func(at int, by byte) be.ReadToken {
		k := good
		k[at] ^= by
		return k
	}
	for _, c := range []struct {
		desc   string
		token  be.ReadToken
		offset int
		n      int
		want   error
		ends   bool
	}{
		{"of another node", spoilt(0, 1), 0, 10, be.ErrToken, false},
		{"with a reserved field", spoilt(36, 1), 0, 10, be.ErrProtocol, false},
		{"read from before", good, -1, 10, be.ErrTooLarge, false},
		{"read too far", good, 91, 10, be.ErrTooLarge, false},
		{"read from beyond", good, 101, 1, be.ErrTooLarge, false},
		{"read nothing", good, 0, 0, be.ErrTooLarge, false},
		{"with another key", spoilt(33, 0x55), 0, 10, cq.RemoteAccessError, true},
		{"that says it is longer", spoilt(25, 1), 100, 10, cq.RemoteAccessError, true},
		{"with another address", spoilt(20, 1), 0, 10, cq.RemoteAccessError, true},
	} {
		_, client := p.connect(t, "tensor")
		err := client.Read(limit(t), &c.token, c.offset, alloc(t, p.nodes[1], c.n, 0))
		if !errors.Is(err, c.want) && !(c.ends && errors.Is(err, be.ErrPeerLost)) {
			t.Errorf("a token %s: %v", c.desc, err)
		}
		m := alloc(t, p.nodes[1], 100, 0)
		if err := client.Read(limit(t), &good, 0, m); (err != nil) != c.ends {
			t.Errorf("after a token %s: %v", c.desc, err)
		} else if err == nil {
			p.nodes[1].Free(m)
		}
		client.Close()
	}
	_, last := p.connect(t, "too far")
	if err := last.PostRead(&good, 91, b[:10], nil); err == nil || !strings.Contains(err.Error(), "10 bytes at offset 91 of 100") {
		t.Errorf("read too far: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if err := x.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	_, client := p.connect(t, "late")
	if err := client.Read(limit(t), &good, 0, alloc(t, p.nodes[1], 10, 0)); !errors.Is(err, cq.RemoteAccessError) && !errors.Is(err, be.ErrPeerLost) {
		t.Errorf("a token that is too late: %v", err)
	}
	if err := client.Read(expired(), &good, 0, alloc(t, p.nodes[1], 10, 0)); err == nil {
		t.Error("read on an engine that ended")
	}
	if bystander.Err() != nil {
		t.Errorf("another peer's socket: %v", bystander.Err())
	}
	if _, err := p.nodes[0].Expose(make([]byte, 8)); !errors.Is(err, be.ErrNotRegistered) {
		t.Errorf("expose memory of somebody else: %v", err)
	}
	p.devs[0].RefuseRegistrations(-1)
	if _, err := p.nodes[0].Expose(b); err == nil || !strings.Contains(err.Error(), "expose 100 bytes") {
		t.Errorf("a device that registers nothing more: %v", err)
	}
	p.devs[0].RefuseRegistrations(0)
	p.nodes[0].Free(b)
}

// A buffer that peers read without asking.
func ExampleNode_Expose() {
	ctx := context.Background()
	nodes, end := newNodes()
	defer end()
	l, err := nodes[0].Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	reader, err := nodes[1].Dial(ctx, l.Addr().String(), "weights")
	if err != nil {
		log.Fatal(err)
	}

	weights, err := nodes[0].Alloc(5)
	if err != nil {
		log.Fatal(err)
	}
	copy(weights, "known")
	exposed, err := nodes[0].Expose(weights)
	if err != nil {
		log.Fatal(err)
	}
	token := exposed.Token() // to be sent to readers once, in a message

	b, err := nodes[1].Alloc(5)
	if err != nil {
		log.Fatal(err)
	}
	if err := reader.Read(ctx, &token, 0, b); err != nil {
		log.Fatal(err) // b is gone
	}
	fmt.Printf("%s\n", b)
	nodes[1].Free(b)
	reader.Close()
	if err := exposed.Close(); err != nil {
		log.Fatal(err)
	}
	nodes[0].Free(weights)
	// Output: known
}
