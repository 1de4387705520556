package bemalloc

import "runtime"

// HeapOptions describes a heap.
type HeapOptions struct{}

// Heap is a cache that one goroutine owns: the fastest way to allocate. One
// goroutine at a time may call its methods. Buffers may be freed through any heap
// or the pool, and outlive the heap.
type Heap struct {
	p       *Pool
	c       *cache
	closed  bool
	cleanup runtime.Cleanup
}

// NewHeap makes a heap. It holds at most some MiB of free objects; Close gives
// them back, as does the collector for a heap that was dropped.
func (p *Pool) NewHeap(HeapOptions) *Heap {
	h := &Heap{p: p, c: new(cache)}
	if p.dbg == nil && !p.closed.Load() {
		h.c.open()
	}
	p.heapsMu.Lock()
	p.heaps[h.c] = struct{}{}
	p.heapsMu.Unlock()
	h.cleanup = runtime.AddCleanup(h, p.dropCache, h.c)
	return h
}

// Alloc is Pool.Alloc from this heap.
func (h *Heap) Alloc(n int) ([]byte, error) {
	if uint(n) <= maxSmall {
		if obj, ok := h.c.pop(classFor(uint(n))); ok {
			return h.p.mem.object(obj, n), nil
		}
	}
	return h.alloc(n, 1)
}

// AllocAligned is Pool.AllocAligned from this heap.
func (h *Heap) AllocAligned(n, align int) ([]byte, error) { return h.alloc(n, align) }

func (h *Heap) alloc(n, align int) ([]byte, error) {
	if h.closed {
		return nil, ErrClosed
	}
	return h.p.alloc(h, n, align)
}

// Free is Pool.Free into this heap.
func (h *Heap) Free(b []byte) error {
	off := h.p.mem.offset(b)
	if class, ok := h.p.table.small(off); ok && h.c.push(class, uint32(off>>objShift)) {
		return nil
	}
	return h.p.free(h, b)
}

// Close gives the heap's free objects back. Its buffers stay valid. Later
// allocations get ErrClosed; later frees work.
func (h *Heap) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	h.cleanup.Stop()
	h.p.dropCache(h.c)
	return nil
}

// dropCache empties the cache of a heap that is closed or was dropped.
func (p *Pool) dropCache(c *cache) {
	p.heapsMu.Lock()
	_, open := p.heaps[c]
	delete(p.heaps, c)
	if open && !p.gone.Load() {
		c.wantFlush()
		p.flush(c)
	}
	p.heapsMu.Unlock()
}
