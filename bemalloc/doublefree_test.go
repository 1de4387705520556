package bemalloc

import (
	"errors"
	"strings"
	"testing"
)

// freeTwice frees a run by two heaps, each of which finds it in use: as two Frees at the
// same time do.
func freeTwice(p *Pool, h1, h2 *Heap, b []byte) {
	u := uint32(p.mem.offset(b) >> unitShift)
	w := p.table.word(u)
	_ = h1.Free(b)
	p.table.setWord(u, w)
	_ = h2.Free(b)
}

// TestLeakOfDoubleFrees: of a run that was freed twice, two spans may come, and then the
// objects of the first count as in use for ever. What Close says names the cause.
func TestLeakOfDoubleFrees(t *testing.T) {
	p, err := New(Config{noJanitor: true})
	if err != nil {
		t.Fatal(err)
	}
	h, h1, h2 := p.NewHeap(HeapOptions{}), p.NewHeap(HeapOptions{}), p.NewHeap(HeapOptions{})
	freeTwice(p, h1, h2, must(t)(h.Alloc(2*unitSize)))
	const n = 15 // 8640 bytes each: a span of two units
	var all [2 * n][]byte
	for i, twice := range []*Heap{h1, h2} {
		p.flush(twice.c)
		for k := range n {
			all[i*n+k] = must(t)(h.Alloc(8193))
		}
	}
	for _, b := range all {
		_ = h.Free(b)
	}
	var le *LeakError
	if err := p.Close(); !errors.As(err, &le) || le.DoubleFrees != n || !strings.Contains(err.Error(), "15x8640, which may be the work of 0 bad and 15 double frees") {
		t.Errorf("close: %v", err)
	}
	if err := unreserve(p.mem.reserved); err != nil {
		t.Error(err)
	}
}

// TestEvictDoubleFree: a cache that counts a run twice is emptied all the same.
func TestEvictDoubleFree(t *testing.T) {
	p := newPool(t, Config{})
	h := p.NewHeap(HeapOptions{})
	freeTwice(p, h, h, must(t)(h.Alloc(2*unitSize)))
	if p.flush(h.c); !h.c.empty() {
		t.Errorf("%d units left", h.c.heldUnits())
	}
}
