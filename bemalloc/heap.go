package bemalloc

import "runtime"

// HeapOptions describes a heap.
type HeapOptions struct {
	// QuotaBytes bounds what this heap's buffers in use take, with rounding. 0: no
	// bound. A heap with a quota has spans of its own and no cache: it is slower,
	// and frees through the pool give back to its quota.
	QuotaBytes int64
}

// Heap is a cache that one goroutine owns: the fastest way to allocate. One
// goroutine at a time may call its methods. Buffers may be freed through any heap
// or the pool, and outlive the heap.
type Heap struct {
	p       *Pool
	c       *cache
	quota   *quota // nil: none
	closed  bool
	cleanup runtime.Cleanup
}

// NewHeap makes a heap. It holds at most some MiB of free objects; Close gives
// them back, as does the collector for a heap that was dropped.
func (p *Pool) NewHeap(o HeapOptions) *Heap {
	h := &Heap{p: p, c: new(cache)}
	p.heapsMu.Lock()
	p.heaps[h.c] = struct{}{}
	if o.QuotaBytes > 0 {
		h.quota = p.addQuota(o.QuotaBytes)
	}
	p.openCache(h)
	p.heapsMu.Unlock()
	h.cleanup = runtime.AddCleanup(h, p.drop, dropped{h.c, h.quota})
	return h
}

// Alloc is Pool.Alloc from this heap.
func (h *Heap) Alloc(n int) ([]byte, error) {
	if uint(n) <= maxSmall {
		if obj, ok := h.c.pop(classFor(uint(n))); ok {
			return h.p.mem.object(obj, n), nil
		}
	} else if uint(n) <= cachedRun*unitSize {
		k := units(n)
		c := &h.c.runs // pop, written out
		s, u, run := c.again(k)
		if s.free&run != run || s.block != u/unitsPerBlock {
			s, u, run = c.search(k)
		}
		if s != nil {
			s.free ^= run
			store(&c.held, c.held-k)
			return h.p.mem.run(h.p.place(u, k, n), n), nil
		}
	}
	return h.alloc(n, 1)
}

// AllocAligned is Pool.AllocAligned from this heap.
func (h *Heap) AllocAligned(n, align int) ([]byte, error) {
	if everyAlign(align) {
		return h.Alloc(n)
	}
	return h.alloc(n, align)
}

func (h *Heap) alloc(n, align int) ([]byte, error) {
	if h.closed {
		return nil, ErrClosed
	}
	b, err := h.p.alloc(h, n, align)
	runtime.KeepAlive(h) // else the collector could drop its cache meanwhile
	return b, err
}

// Free is Pool.Free into this heap.
func (h *Heap) Free(b []byte) error {
	off := h.p.mem.offset(b)
	w := h.p.table.at(off)
	if w.kind() == kindHead {
		if k, ok := w.run(off); ok {
			u := uint32(off >> unitShift)
			if s := h.c.runs.roomFor(u, k); s != nil { // push, written out
				h.p.table.setWord(u, kindFreed)
				h.c.runs.put(s, u, k)
				runtime.KeepAlive(h)
				return nil
			}
		}
	} else if class, ok := w.small(off); ok && h.c.push(class, uint32(off>>objShift)) {
		runtime.KeepAlive(h) // else the collector could drop its cache meanwhile
		return nil
	}
	err := h.p.free(h, b)
	runtime.KeepAlive(h)
	return err
}

// heedFlush empties the heap's cache if that is wanted.
func (p *Pool) heedFlush(h *Heap) {
	if !h.c.wanted.Load() || h.closed {
		return
	}
	p.flush(h.c)
	p.openCache(h)
}

// openCache lets a heap's cache fill, unless its kind has none or somebody waits.
func (p *Pool) openCache(h *Heap) {
	if h.quota != nil || p.dbg != nil || p.closed.Load() || p.room.occupied() {
		return
	}
	h.c.open()
	if p.room.occupied() { // since a moment ago: its request to flush may have come before
		h.c.wantFlush()
	}
}

// Close gives the heap's free objects back. Its buffers stay valid. Later
// allocations get ErrClosed; later frees work.
func (h *Heap) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	h.cleanup.Stop()
	h.p.drop(dropped{h.c, h.quota})
	return nil
}

// dropped is what a heap leaves behind that was closed or collected.
type dropped struct {
	c     *cache
	quota *quota
}

// drop takes back what a heap held.
func (p *Pool) drop(d dropped) {
	p.heapsMu.Lock()
	_, open := p.heaps[d.c]
	delete(p.heaps, d.c)
	if open && !p.gone.Load() {
		d.c.wantFlush()
		p.flush(d.c)
	}
	p.heapsMu.Unlock()
	if d.quota != nil {
		p.retireQuota(d.quota)
	}
}
