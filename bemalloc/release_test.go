package bemalloc

import (
	"errors"
	"testing"
	"time"
)

// ticks moves the clock on in janitor ticks.
func (c *clock) ticks(p *Pool, n int) {
	for range n {
		c.advance(tickEvery)
		p.tick(c.now())
	}
}

// fillBlocks allocates n whole blocks.
func fillBlocks(t *testing.T, p *Pool, n int) (bufs [][]byte) {
	t.Helper()
	for range n {
		bufs = append(bufs, must(t)(p.Alloc(blockSize)))
	}
	return bufs
}

func freeAll(t *testing.T, p *Pool, bufs [][]byte) {
	t.Helper()
	for _, b := range bufs {
		free(t, p, b)
	}
}

// TestRelease: free blocks beyond RetainBytes go after the delay, 8 a second at
// most; the rest stays.
func TestRelease(t *testing.T) {
	dev, clk := newRegistrar(t), newClock()
	p := newPool(t, Config{Registrar: dev, RetainBytes: 16 << 20, noJanitor: true, now: clk.now})
	bufs := fillBlocks(t, p, 24)
	clk.ticks(p, 20)
	freeAll(t, p, bufs)
	open := dev.regions()
	clk.ticks(p, 5) // the first one dates the free blocks
	if n := dev.regions(); n != open {
		t.Errorf("%d regions left before the delay, want %d", n, open)
	}
	clk.ticks(p, 1)
	if n := dev.regions(); n != open-releasePerTic {
		t.Errorf("%d regions left after one tick, want %d", n, open-releasePerTic)
	}
	clk.ticks(p, 10)
	if n := dev.regions(); n != 4 {
		t.Errorf("%d regions left, want 4", n)
	}
}

// TestReleaseHuge: huge runs are kept for the delay and reused at the same size.
func TestReleaseHuge(t *testing.T) {
	dev, clk := newRegistrar(t), newClock()
	p := newPool(t, Config{Registrar: dev, RetainBytes: -1, noJanitor: true, now: clk.now})
	for range 5 {
		free(t, p, must(t)(p.Alloc(10<<20)))
		clk.ticks(p, 1)
	}
	if n := dev.count(); n != 1 {
		t.Errorf("%d registrations for one huge run", n)
	}
	clk.ticks(p, 7)
	if n := dev.regions(); n != 0 {
		t.Errorf("%d regions left", n)
	}
}

// TestHysteresis: a load that swings registers less and less often, as each
// reopening soon after a close doubles the delay. Control: with the delay held
// at its start, it registers in every swing.
func TestHysteresis(t *testing.T) {
	swings := func(hold bool) int {
		dev, clk := newRegistrar(t), newClock()
		p := newPool(t, Config{Registrar: dev, RetainBytes: -1, noJanitor: true, now: clk.now})
		for range 20 {
			bufs := fillBlocks(t, p, 4)
			clk.ticks(p, 3)
			freeAll(t, p, bufs)
			clk.ticks(p, 12)
			if hold {
				p.release.delay = releaseDelay
			}
		}
		return dev.count()
	}
	with, without := swings(false), swings(true)
	if with > 16 || without < 70 {
		t.Errorf("%d registrations with hysteresis, want at most 16; %d without, want at least 70", with, without)
	}
}

// TestGrowAhead: while demand grows the janitor opens the next block before
// somebody waits for it; when demand stops it opens none.
func TestGrowAhead(t *testing.T) {
	dev, clk := newRegistrar(t), newClock()
	p := newPool(t, Config{Registrar: dev, noJanitor: true, now: clk.now})
	b := must(t)(p.Alloc(3 << 20))
	clk.advance(500 * time.Millisecond)
	p.tick(clk.now())
	if n := dev.regions(); n != 2 {
		t.Errorf("%d blocks, want one ahead", n)
	}
	c := must(t)(p.Alloc(3 << 20))
	if n := dev.count(); n != 2 {
		t.Errorf("%d registrations, the second block was open already", n)
	}
	clk.ticks(p, 10)
	if n := dev.count(); n != 2 {
		t.Errorf("%d registrations while demand stood still", n)
	}
	free(t, p, b)
	free(t, p, c)
}

// TestIdleCaches: caches that did not change are emptied, so that their blocks
// can go.
func TestIdleCaches(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		dev, clk := newRegistrar(t), newClock()
		cfg.Registrar, cfg.RetainBytes, cfg.noJanitor, cfg.now = dev, -1, true, clk.now
		p := newPool(t, cfg)
		free(t, p, must(t)(p.Alloc(100)))
		if p.Stats().CachedBytes == 0 {
			t.Fatal("nothing is cached")
		}
		clk.ticks(p, 12)
		if s := p.Stats(); s.CachedBytes != 0 || s.RegisteredBytes != 0 {
			t.Errorf("%d bytes cached, %d registered", s.CachedBytes, s.RegisteredBytes)
		}
	})
}

// TestDeregisterFails: memory that a device does not let go of is parked, never
// reused, counted, and tried again at Close.
func TestDeregisterFails(t *testing.T) {
	dev := newRegistrar(t)
	p := newPool(t, Config{Registrar: dev, noJanitor: true, MaxBytes: 8 << 20})
	b := must(t)(p.Alloc(4 << 20))
	free(t, p, b)
	dev.keep = true
	if n := p.Trim(0); n != 0 {
		t.Errorf("Trim gave back %d bytes that the device holds", n)
	}
	if s := p.Stats(); s.ParkedBytes != 4<<20 || s.RegisteredBytes != 0 {
		t.Errorf("%d bytes parked, %d registered", s.ParkedBytes, s.RegisteredBytes)
	}
	b[0] = 1 // still mapped
	c := must(t)(p.Alloc(4 << 20))
	if &c[0] == &b[0] {
		t.Error("parked memory was handed out")
	}
	if _, err := p.Alloc(1); !errors.Is(err, ErrLimit) {
		t.Errorf("parked memory does not count: %v", err)
	}
	free(t, p, c)
	if err := p.Close(); !errors.Is(err, errRefused) {
		t.Errorf("Close: %v", err)
	}
	c[0] = 1
	dev.keep = false
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestUndoFails: when the second device refuses a block and the first does not
// let go of it again, the block is parked.
func TestUndoFails(t *testing.T) {
	dev, dev2 := newRegistrar(t), newRegistrar(t)
	dev.keep, dev2.fail = true, true
	cfg := Config{Registrar: dev, noJanitor: true}
	cfg.Also = append(cfg.Also, dev2)
	p := newPool(t, cfg)
	if _, err := p.Alloc(1); !errors.Is(err, errRefused) {
		t.Errorf("Alloc: %v", err)
	}
	if s := p.Stats(); s.ParkedBytes != 4<<20 {
		t.Errorf("%d bytes parked", s.ParkedBytes)
	}
	dev.keep = false
}

// TestTrimKeeps: Trim leaves what it is told to.
func TestTrimKeeps(t *testing.T) {
	p := newPool(t, Config{noJanitor: true})
	freeAll(t, p, fillBlocks(t, p, 10))
	free0 := p.Stats().FreeBytes
	if n := p.Trim(12 << 20); n != free0-12<<20 {
		t.Errorf("Trim gave back %d of %d bytes", n, free0)
	}
	if s := p.Stats(); s.FreeBytes != 12<<20 {
		t.Errorf("%d bytes free", s.FreeBytes)
	}
}

// TestSteadyState: after warm-up nothing is registered and nothing is allocated
// from the Go heap. Control: without retained bytes and with Trim in between,
// the same load registers.
func TestSteadyState(t *testing.T) {
	kinds(t, func(t *testing.T, cfg Config) {
		for _, trim := range []bool{false, true} {
			dev := newRegistrar(t)
			cfg.Registrar, cfg.noJanitor = dev, true // no block ahead of demand
			p := newPool(t, cfg)
			h := p.NewHeap(HeapOptions{})
			ring := make([][]byte, 256)
			i := 0
			round := func() {
				for range 1000 {
					slot := &ring[i%len(ring)]
					var a, f allocator = p, p
					if i%3 == 0 {
						a = h
					}
					if i%5 == 0 {
						f = h
					}
					if *slot != nil {
						if err := f.Free(*slot); err != nil {
							t.Fatal(err)
						}
					}
					b, err := a.Alloc(1 + i%len(ring)*7919%(100<<10))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := p.MR(b); err != nil {
						t.Fatal(err)
					}
					*slot = b
					i++
				}
			}
			testing.AllocsPerRun(200, round) // at the same stack depth: the same shard
			before := dev.count()
			rounds := 1000
			if trim {
				rounds = 10
			}
			allocs := testing.AllocsPerRun(rounds, func() {
				if trim {
					freeAll(t, p, ring)
					clear(ring)
					if err := h.Close(); err != nil {
						t.Fatal(err)
					}
					h = p.NewHeap(HeapOptions{})
					p.Trim(0)
				}
				round()
			})
			registered := dev.count() - before
			if !trim && (allocs != 0 || registered != 0) {
				t.Errorf("10^6 operations: %v Go allocations per 1000, %d registrations", allocs, registered)
			}
			if trim && registered == 0 {
				t.Error("control: no registrations although all was given back in between")
			}
			freeAll(t, p, ring)
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
