package be_test

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// TestExposureEndsWhileRead: memory is exposed no more while peers read it. What a read
// gave is what was there before the end, whatever the memory is used for afterwards.
func TestExposureEndsWhileRead(t *testing.T) {
	const size = 300_000
	p := newPair(t, be.Config{})
	for round := range 20 {
		b := alloc(t, p.nodes[0], size, 0)
		for i := range b {
			b[i] = 1
		}
		x, err := p.nodes[0].Expose(b)
		if err != nil {
			t.Fatal(err)
		}
		token := x.Token()
		started := make(chan struct{}, 100)
		var wg sync.WaitGroup
		for range 3 {
			_, client := p.connect(t, "tensor")
			wg.Go(func() {
				defer client.Close()
				for {
					m, err := p.nodes[1].Alloc(size)
					if err != nil {
						t.Error(err)
						return
					}
					if err := client.Read(limit(t), &token, 0, m); err != nil {
						return
					}
					for i := range m {
						if m[i] != 1 {
							t.Errorf("round %d: byte %d is %d, of what came after the end", round, i, m[i])
							break
						}
					}
					p.nodes[1].Free(m)
					select {
					case started <- struct{}{}:
					default:
					}
				}
			})
		}
		for range round%4 + 1 {
			<-started
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		for i := range b {
			b[i] = 2
		}
		wg.Wait()
		p.nodes[0].Free(b)
	}
}

// TestMadeUpPlaces: tokens whose places wrap around, at each border, give errors at the
// reader, and harm nobody's memory.
func TestMadeUpPlaces(t *testing.T) {
	p := newPair(t, be.Config{})
	b := alloc(t, p.nodes[0], 100, 0)
	x, err := p.nodes[0].Expose(b)
	if err != nil {
		t.Fatal(err)
	}
	good := x.Token()
	for _, place := range []struct {
		addr, length uint64
		offset, n    int
	}{
		{1<<64 - 8, 8, 0, 8}, {1<<64 - 8, 100, 0, 100}, {1<<64 - 8, 1<<64 - 1, 8, 16}, {1<<64 - 1, 1 << 40, 1 << 39, 200_000},
		{1, 1<<64 - 1, 1<<63 - 1, 200_000}, {0, 1 << 20, 0, 200_000}, {1<<63 - 1, 1 << 63, 1<<62 + 1, 1},
	} {
		k := good
		binary.LittleEndian.PutUint64(k[16:], place.addr)
		binary.LittleEndian.PutUint64(k[24:], place.length)
		_, client := p.connect(t, "made up")
		if err := client.Read(limit(t), &k, place.offset, alloc(t, p.nodes[1], place.n, 0)); err == nil {
			t.Errorf("%d bytes at %d of %d at %#x were read", place.n, place.offset, place.length, place.addr)
		}
		client.Close()
	}
	_, client := p.connect(t, "good")
	m := alloc(t, p.nodes[1], 100, 0)
	if err := client.Read(limit(t), &good, 0, m); err != nil {
		t.Error(err)
	} else {
		p.nodes[1].Free(m)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	p.nodes[0].Free(b)
}

// TestNodeClosesWhileExposed: Close says what is still exposed, and Close again gives
// everything back.
func TestNodeClosesWhileExposed(t *testing.T) {
	p := newPair(t, be.Config{})
	n := p.nodes[0]
	b := alloc(t, n, 100, 0)
	x, err := n.Expose(b)
	if err != nil {
		t.Fatal(err)
	}
	if !checked() { // with checks it is refused: the memory is exposed
		n.Free(b)
	}
	if err := n.Close(); err == nil {
		t.Error("a node with exposed memory was closed")
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if checked() {
		n.Free(b)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
