package bemalloc

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestRunCacheModel holds random pushes and pops of a run cache to a set of units.
func TestRunCacheModel(t *testing.T) {
	const seed, blocks = 11, 2 * runSlots
	r := rand.New(rand.NewPCG(seed, seed))
	tab := newTable(int64(blocks)<<blockShift, 1)
	c := new(cache)
	c.open()
	c.runs.limit = shareMax
	mine := map[uint32]bool{}       // units in the cache
	var out []blockUnits            // runs in use
	for b := range uint32(blocks) { // all of a block's units in use, as runs of 4
		for at := uint32(0); at < unitsPerBlock; at += 4 {
			out = append(out, blockUnits{b, runMask(at, 4)})
		}
	}
	lose := func(u, k uint32, what string) {
		for i := range k {
			if !mine[u+i] {
				t.Fatalf("seed %d: %s gave unit %d, which the cache did not have", seed, what, u+i)
			}
			delete(mine, u+i)
		}
	}
	for step := range 200_000 {
		if k := 1 + r.Uint32N(cachedRun); r.IntN(2) == 0 {
			if u, ok := c.runs.pop(k); ok {
				lose(u, k, "pop")
				out = append(out, blockUnits{u / unitsPerBlock, runMask(u%unitsPerBlock, k)})
			} else if longestOf(&c.runs) >= k {
				t.Fatalf("seed %d, step %d: no run of %d units, but one of %d is there", seed, step, k, longestOf(&c.runs))
			}
		} else if len(out) > 0 {
			i := r.IntN(len(out))
			e := out[i]
			out[i] = out[len(out)-1]
			out = out[:len(out)-1]
			at, k := uint32(bits.TrailingZeros64(e.units)), uint32(bits.OnesCount64(e.units))
			for i := range k {
				mine[e.block*unitsPerBlock+at+i] = true
			}
			var buf unitList
			u := e.block*unitsPerBlock + at
			if !c.runs.push(&tab, u, k) {
				for _, e := range buf[:c.runs.spill(&tab, u, k, &buf)] {
					for x := e.units; x != 0; x &= x - 1 {
						lose(e.block*unitsPerBlock+uint32(bits.TrailingZeros64(x)), 1, "spill")
					}
					for x := e.units; x != 0; { // back in use, as the longest runs that are allowed
						at := uint32(bits.TrailingZeros64(x))
						k := min(uint32(bits.TrailingZeros64(^(x >> at))), cachedRun)
						x &^= runMask(at, k)
						out = append(out, blockUnits{e.block, runMask(at, k)})
					}
				}
			}
		}
		if int(c.runs.held) != len(mine) || c.runs.held > c.runs.limit {
			t.Fatalf("seed %d, step %d: %d units held of at most %d, want %d", seed, step, c.runs.held, c.runs.limit, len(mine))
		}
	}
}

func longestOf(c *runCache) (n uint32) {
	for _, s := range c.slot {
		n = max(n, longestRun(s.free))
	}
	return n
}

// TestShortRun holds the branch-free search to the plain one.
func TestShortRun(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, seed))
	for range 100_000 {
		x := r.Uint64() | r.Uint64()
		for k := uint32(1); k <= cachedRun; k++ {
			at, want := shortRun(x, k), firstRun(x, k, 1)
			if (at == unitsPerBlock) != (want == unitsPerBlock) || at < unitsPerBlock && x&runMask(at, k) != runMask(at, k) {
				t.Fatalf("seed %d: run of %d in %#x: %d, the first is at %d", seed, k, x, at, want)
			}
		}
	}
}

// TestRunsRecut frees large buffers and allocates other sizes over them, so that what
// their units say is stale: regions, ownership and bad frees are told all the same.
func TestRunsRecut(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		p := newPool(t, cfg)
		h := p.NewHeap(HeapOptions{})
		defer func() { _ = h.Close() }()
		const seed = 7
		r := rand.New(rand.NewPCG(seed, seed))
		var live [40][]byte
		for step := range 20_000 {
			i := r.IntN(len(live))
			if b := live[i]; b != nil {
				// Somewhere inside, 64-byte aligned: part of it, and not freeable.
				at := (1 + r.IntN(len(b)/objAlign-1)) * objAlign
				if _, err := p.MR(b[at:]); err != nil || !p.Owns(b[at:]) {
					t.Fatalf("seed %d, step %d: region of the rest of a buffer: %v", seed, step, err)
				}
				if err := p.Free(b[at:]); !errors.Is(err, ErrBadFree) {
					t.Fatalf("seed %d, step %d: free of the inside at %d: %v", seed, step, at, err)
				}
				if b[0] != byte(i) || b[len(b)-1] != byte(i) {
					t.Fatalf("seed %d, step %d: buffer %d was overwritten", seed, step, i)
				}
				if err := h.Free(b); err != nil {
					t.Fatal(err)
				}
			}
			b, err := h.Alloc(maxSmall + 1 + r.IntN(cachedRun*unitSize-maxSmall))
			if err != nil {
				t.Fatal(err)
			}
			b[0], b[len(b)-1] = byte(i), byte(i)
			live[i] = b
		}
		for _, b := range live {
			free(t, p, b)
		}
	})
}

// TestLargeStartsSpread asks that the first lines of large buffers do not all fall on
// the same sets of a processor's caches, and that an alignment is kept all the same.
func TestLargeStartsSpread(t *testing.T) {
	p := newPool(t, Config{})
	lines := map[uint64]bool{}
	var live [][]byte
	for range 64 {
		b, err := p.Alloc(1<<20 - 4096)
		if err != nil {
			t.Fatal(err)
		}
		lines[p.mem.offset(b)%4096] = true
		live = append(live, b)
		b, err = p.AllocAligned(100<<10, 4096)
		if err != nil || p.mem.offset(b)%4096 != 0 {
			t.Fatalf("offset %d, %v", p.mem.offset(b), err)
		}
		live = append(live, b)
	}
	if len(lines) < 16 {
		t.Errorf("64 buffers start at %d different lines of a page, want 16", len(lines))
	}
	whole, err := p.Alloc(1 << 20)
	if err != nil || len(whole) != 1<<20 {
		t.Fatal(err)
	}
	for _, b := range append(live, whole) {
		free(t, p, b)
	}
}

// TestShares: the caches among which free units are shared are those that hold some; one
// that is closed empty does not count any more.
func TestShares(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		cfg.noJanitor = true
		p := newPool(t, cfg)
		for range 10 {
			h := p.NewHeap(HeapOptions{})
			var bufs [][]byte
			for range 8 {
				bufs = append(bufs, must(t)(h.Alloc(300<<10)))
			}
			for _, b := range bufs {
				if err := h.Free(b); err != nil {
					t.Fatal(err)
				}
			}
			p.runs.mu.Lock()
			if p.runs.sharers != 1 || p.runs.shared == 0 {
				t.Errorf("%d caches share, with %d units", p.runs.sharers, p.runs.shared)
			}
			p.runs.mu.Unlock()
			bufs = bufs[:0]
			for h.c.runs.held > 0 { // empty without a visit to the run allocator
				u, ok := h.c.runs.pop(1)
				if !ok {
					t.Fatal("units held, but none to pop")
				}
				bufs = append(bufs, p.mem.view(p.place(u, 1, unitSize), unitSize))
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			for _, b := range bufs {
				free(t, p, b)
			}
			p.Trim(0)
			if p.runs.sharers != 0 || p.runs.shared != 0 {
				t.Errorf("after Close and Trim %d caches share, with %d units", p.runs.sharers, p.runs.shared)
			}
		}
	})
}

// TestSpillFull: a cache that holds units of a block in every slot, and is asked to flush,
// gives all of them and the run that comes on top.
func TestSpillFull(t *testing.T) {
	tab := newTable(runSlots<<blockShift, 1)
	c := newCache()
	c.runs.limit = shareMax
	for b := range uint32(runSlots) {
		if !c.runs.push(&tab, b*unitsPerBlock, 1) {
			t.Fatalf("block %d not taken", b)
		}
	}
	c.wantFlush()
	var buf unitList
	n := c.runs.spill(&tab, 2, 3, &buf)
	units := 0
	for _, e := range buf[:n] {
		for x := e.units; x != 0; x &= x - 1 {
			units++
		}
	}
	if units != runSlots+3 || c.runs.held != 0 {
		t.Errorf("%d units spilled, %d left", units, c.runs.held)
	}
}

// TestSharersReplaced: a cache that was replaced while its caller was at the run allocator is
// not counted among the sharers.
func TestSharersReplaced(t *testing.T) {
	p := newPool(t, Config{noJanitor: true})
	if !p.local.perP {
		t.Skip("no caches per P compiled in: shards are never replaced")
	}
	var bufs [][]byte
	for range 40 {
		bufs = append(bufs, must(t)(p.Alloc(100_000)))
	}
	for _, b := range bufs {
		free(t, p, b)
	}
	c, s := p.local.hold()
	p.local.letGo(s)
	p.Trim(blockSize)
	u, more, ok := p.takeRuns(c, 1)
	if !ok || more.units != 0 {
		t.Fatalf("a run: %v; and for a cache that is gone %x", ok, more.units)
	}
	if p.runs.sharers != 0 || p.runs.shared != 0 {
		t.Errorf("%d caches share %d units", p.runs.sharers, p.runs.shared)
	}
	free(t, p, p.mem.view(p.place(u, 1, 1), 1))
}

// TestSharersAfterTrim: caches that were replaced do not count among the sharers.
func TestSharersAfterTrim(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		cfg.noJanitor = true
		p := newPool(t, cfg)
		stop := background(func() { p.Trim(64 << 20) })
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(w)))
				var live [16][]byte
				for range 20000 {
					i := r.IntN(len(live))
					if live[i] != nil {
						if err := p.Free(live[i]); err != nil {
							t.Error(err)
						}
					}
					b, err := p.Alloc(maxSmall + 1 + r.IntN(400<<10))
					if err != nil {
						t.Error(err)
					}
					live[i] = b
				}
				for _, b := range live {
					_ = p.Free(b)
				}
			})
		}
		wg.Wait()
		stop()
		p.Trim(0)
		if p.runs.sharers != 0 || p.runs.shared != 0 {
			t.Errorf("%d caches share %d units, and all were emptied", p.runs.sharers, p.runs.shared)
		}
	})
}

// TestRunAgain: a run that was freed is what the next allocation of that length gets, unless
// its units were used for another meanwhile.
func TestRunAgain(t *testing.T) {
	tab := newTable(4<<blockShift, 1)
	c := newCache()
	c.runs.limit = shareMax
	c.runs.stock(blockUnits{1, runMask(0, 20)})
	for _, u := range []uint32{100, 110, 120} { // in block 1, behind what is free
		if !c.runs.push(&tab, u, 3) {
			t.Fatal("not taken")
		}
	}
	for _, want := range []uint32{120, 110} {
		if u, ok := c.runs.pop(3); !ok || u != want {
			t.Fatalf("unit %d, want %d, which was freed last", u, want)
		}
	}
	for at := uint32(64); at < 84; at += 2 {
		if u, ok := c.runs.pop(2); !ok || u != at {
			t.Fatalf("unit %d, want %d", u, at)
		}
	}
	if u, ok := c.runs.pop(2); !ok || u != 100 { // a part of the run that is remembered
		t.Fatalf("unit %d, want 100", u)
	}
	if u, ok := c.runs.pop(3); ok {
		t.Fatalf("unit %d: two units of that run are in use", u)
	}
	if u, ok := c.runs.pop(1); !ok || u != 102 || c.runs.held != 0 {
		t.Fatalf("unit %d, %d left", u, c.runs.held)
	}
}
