package be_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// pieces cuts n pieces at random out of a buffer; some touch, some are empty.
func pieces(rng *rand.Rand, slab []byte, n, longest int) (parts [][]byte, whole []byte) {
	for range n {
		k := rng.IntN(longest + 1)
		at := rng.IntN(len(slab) - k + 1)
		parts = append(parts, slab[at:at+k])
		if cut := at + k + rng.IntN(8); rng.IntN(4) == 0 && cut <= len(slab) {
			parts = append(parts, slab[at+k:cut]) // touches the one before
		}
	}
	return parts, bytes.Join(parts, nil)
}

// TestGather sends messages in pieces, of every shape, eager and by rendezvous.
func TestGather(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "gather")
	slab := alloc(t, p.nodes[1], 1<<20, 3)
	defer p.nodes[1].Free(slab)
	done := make(chan error, 1)
	for i, c := range []struct{ n, longest int }{
		{0, 0}, {1, 0}, {1, 100}, {29, 200}, {30, 200}, {200, 20}, {31, 4096}, {300, 1024}, {2000, 1024}, {3, 1 << 20}, {100, 1 << 17}, {40000, 64},
	} {
		parts, want := pieces(rng, slab, c.n, c.longest)
		parts = append([][]byte{nil}, parts...)
		if err := client.PostGather(parts[0], parts[1:], func(err error) { done <- err }); err != nil {
			t.Fatal(i, err)
		}
		clear(parts) // the slice is ours again
		b, err := server.Recv(limit(t))
		if err != nil {
			t.Fatal(i, err)
		}
		if !bytes.Equal(b, want) {
			t.Errorf("message %d of %d pieces, %d bytes: arrived changed", i, c.n, len(want))
		}
		p.nodes[0].Free(b)
		if err := <-done; err != nil {
			t.Fatal(i, err)
		}
	}
}

// TestGatherRefused checks that what cannot be sent is refused at once.
func TestGatherRefused(t *testing.T) {
	p := newPair(t, be.Config{MaxMessage: 4096})
	_, client := p.connect(t, "gather")
	never := func(error) { t.Error("done was called") }
	if err := client.PostGather(nil, [][]byte{make([]byte, 8)}, never); !errors.Is(err, be.ErrNotRegistered) {
		t.Error("memory of the Go heap:", err)
	}
	b := alloc(t, p.nodes[1], 4000, 1)
	defer p.nodes[1].Free(b)
	if err := client.PostGather(b, [][]byte{b}, never); !errors.Is(err, be.ErrTooLarge) {
		t.Error("8000 bytes:", err)
	}
}

// TestGatherFailure loses the device under gathered messages: each done is called
// once, with an error or without, and only then the parts change.
func TestGatherFailure(t *testing.T) {
	p := newPair(t, be.Config{})
	_, client := p.connect(t, "gather")
	slab := alloc(t, p.nodes[1], 1<<20, 3)
	const n = 50
	done := make(chan error, 2*n)
	posted := 0
	for i := range n {
		if err := client.PostGather(slab[:1<<19], [][]byte{slab[i : 1<<19]}, func(err error) { done <- err }); err == nil {
			posted++
		}
		if i == n/2 {
			p.devs[0].Remove()
		}
	}
	failed := 0
	for range posted {
		if err := <-done; err != nil {
			failed++
		}
	}
	p.nodes[1].Free(slab)
	if failed == 0 {
		t.Error("no message failed")
	}
	if len(done) > 0 {
		t.Error("done was called twice")
	}
}
