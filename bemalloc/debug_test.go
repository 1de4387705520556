package bemalloc

import (
	"errors"
	"strings"
	"testing"
)

// forEachSize runs a check on a buffer of every kind.
func forEachSize(t *testing.T, cfg Config, f func(t *testing.T, p *Pool, n int)) {
	for _, n := range []int{1, 64, 1000, 20_000, 100_000, 5 << 20} {
		cfg.noJanitor = true
		p := newPool(t, cfg)
		f(t, p, n)
	}
}

// lastOf gives the last byte of the memory behind b.
func lastOf(p *Pool, b []byte) int { return p.usable(p.mem.offset(b)) - 1 }

// TestCheckDoubleFree: with Check the second Free fails at once, whatever was
// freed in between. Control: without it, a buffer deep in a magazine is taken.
func TestCheckDoubleFree(t *testing.T) {
	for _, check := range []bool{true, false} {
		p := newPool(t, Config{Debug: Debug{Check: check}, noJanitor: true})
		a, b, c := must(t)(p.Alloc(100)), must(t)(p.Alloc(100)), must(t)(p.Alloc(100))
		for _, x := range [][]byte{a, b, c} {
			free(t, p, x)
		}
		err := p.Free(a)
		if got := errors.Is(err, ErrDoubleFree); got != check {
			t.Errorf("check %v: second free: %v", check, err)
		}
		if !check { // it is found when the batch reaches the central list
			p.Trim(0)
			if n := p.Stats().DoubleFrees; n != 1 {
				t.Errorf("%d double frees counted, want 1", n)
			}
		}
	}
}

// TestPoison: a write after free is found by the allocation that gets the memory,
// which is then kept out of use. Control: without Poison it goes unnoticed.
func TestPoison(t *testing.T) {
	for _, poison := range []bool{true, false} {
		forEachSize(t, Config{Debug: Debug{Check: true, Poison: poison, Sites: true}}, func(t *testing.T, p *Pool, n int) {
			b := must(t)(p.Alloc(n))
			free(t, p, b)
			b[n/2] = 1 // the planted fault
			c, err := p.Alloc(n)
			var ce *CorruptError
			if got := errors.As(err, &ce); got != poison {
				t.Fatalf("poison %v, %d bytes: %v", poison, n, err)
			}
			if !poison {
				free(t, p, c)
				return
			}
			if ce.Offset != n/2 || !strings.Contains(err.Error(), "TestPoison") {
				t.Errorf("%d bytes: %v", n, err)
			}
			d := must(t)(p.Alloc(n))
			if &d[0] == &b[0] {
				t.Errorf("damaged memory of %d bytes was handed out", n)
			}
			free(t, p, d)
			// The damaged buffer is out of use for good; let the pool close.
			if err := p.freeOne(nil, b); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGuard: a write past the end is found by Free. Control: the last byte of the
// buffer itself is not.
func TestGuard(t *testing.T) {
	forEachSize(t, Config{Debug: Debug{Guard: true, Poison: true}}, func(t *testing.T, p *Pool, n int) {
		for _, past := range []int{-1, 0, guardBytes - 1} {
			b := must(t)(p.Alloc(n))
			all := p.mem.view(p.mem.offset(b), lastOf(p, b)+1)
			all[n+past] ^= 0xFF
			err := p.Free(b)
			var ce *CorruptError
			if got := errors.As(err, &ce); got != (past >= 0) {
				t.Errorf("%d bytes, write at %+d: %v", n, past, err)
			} else if got && ce.Offset != n+past {
				t.Errorf("%d bytes, write at %+d: %v", n, past, err)
			}
		}
	})
}

// TestQuarantine: a freed buffer is not reused while it waits, and a second free
// is noticed meanwhile.
func TestQuarantine(t *testing.T) {
	forEachSize(t, Config{Debug: Debug{QuarantineBytes: 24 << 20}}, func(t *testing.T, p *Pool, n int) {
		b := must(t)(p.Alloc(n))
		free(t, p, b)
		if err := p.Free(b); !errors.Is(err, ErrDoubleFree) {
			t.Errorf("second free of %d bytes: %v", n, err)
		}
		for range 3 {
			c := must(t)(p.Alloc(n))
			if &c[0] == &b[0] {
				t.Errorf("a buffer of %d bytes left the quarantine", n)
			}
			if n > 1 {
				if err := p.Free(c[1:]); !errors.Is(err, ErrBadFree) {
					t.Errorf("free from the second byte of %d: %v", n, err)
				}
			}
			free(t, p, c)
			if s := p.Stats(); s.QuarantineBytes == 0 || addsUp(s) != nil {
				t.Errorf("%d bytes in quarantine, %v", s.QuarantineBytes, addsUp(s))
			}
		}
	})
}

// TestLeak: Close says what is in use and, with Sites, who allocated it; it
// succeeds once that was freed.
func TestLeak(t *testing.T) {
	for _, sites := range []bool{true, false} {
		p := newPool(t, Config{Debug: Debug{Sites: sites}, noJanitor: true})
		h := p.NewHeap(HeapOptions{})
		var bufs [][]byte
		for _, n := range []int{100, 100, 40_000, 5 << 20} {
			bufs = append(bufs, must(t)(p.Alloc(n)), must(t)(h.Alloc(n)))
		}
		free(t, p, must(t)(p.Alloc(100))) // in a cache: no leak
		err := p.Close()
		var le *LeakError
		if !errors.As(err, &le) || !errors.Is(err, ErrLeak) || le.Allocations != 8 || le.Bytes != 4*128+2*65536+2*8<<20 {
			t.Fatalf("Close: %v", err)
		}
		if len(le.Sizes) != 3 || le.Sizes[0] != (LeakSize{128, 4}) || le.Sizes[2] != (LeakSize{8 << 20, 2}) {
			t.Errorf("sizes %v", le.Sizes)
		}
		if !sites {
			if len(le.Sites) != 0 {
				t.Errorf("sites %v", le.Sites)
			}
		} else if len(le.Sites) != 2 || le.Sites[0].Count != 4 || !strings.HasPrefix(le.Sites[0].Stack[0], "github.com/byteexpress/byteexpress/bemalloc.TestLeak ") {
			t.Errorf("sites %v", le.Sites)
		}
		if _, err := p.Alloc(1); !errors.Is(err, ErrClosed) {
			t.Errorf("Alloc after Close: %v", err)
		}
		for _, b := range bufs {
			b[0] = 1 // still mapped
			free(t, p, b)
		}
		if err := p.Close(); err != nil {
			t.Errorf("Close after the frees: %v", err)
		}
	}
}

// TestForeignPointers: slices that the pool did not hand out are refused, and
// nothing changes.
func TestForeignPointers(t *testing.T) {
	for _, debug := range []Debug{{}, {Check: true}, {Sites: true}} {
		p := newPool(t, Config{Debug: debug, noJanitor: true})
		q := newPool(t, Config{noJanitor: true})
		a, other := must(t)(p.Alloc(100)), must(t)(q.Alloc(100))
		before := p.Stats()
		span := p.mem.view(p.mem.offset(a)&^(unitSize-1), unitSize)
		bad := map[string][]byte{
			"Go memory":          make([]byte, 10),
			"another pool's":     other,
			"inside an object":   a[1:],
			"a cache line on":    a[64:],
			"past the objects":   span[classes[classFor(100)].limit:],
			"a free unit":        p.mem.view(10*unitSize, 10),
			"a closed block":     p.mem.view(p.mem.size-1, 1),
			"an unaligned start": p.mem.view(p.mem.offset(a)+128+8, 8),
		}
		delete(bad, "past the objects") // 128-byte objects fill their span
		for name, b := range bad {
			if err := p.Free(b); !errors.Is(err, ErrBadFree) {
				t.Errorf("debug %+v: free of %s: %v", debug, name, err)
			}
		}
		if err := p.Free(nil); err != nil {
			t.Errorf("Free(nil): %v", err)
		}
		after := p.Stats()
		if after.BadFrees-before.BadFrees != int64(len(bad)) || after.InUseBytes != before.InUseBytes || after.CachedBytes != before.CachedBytes {
			t.Errorf("debug %+v: bad frees changed the pool:\n%+v\n%+v", debug, before, after)
		}
		for name, b := range map[string][]byte{"Go memory": make([]byte, 10), "another pool's": other, "a free unit": p.mem.view(10*unitSize, 10), "too long": p.mem.view(p.mem.offset(a), 129), "nothing": nil} {
			if r, err := p.MR(b); !errors.Is(err, ErrNotOwned) || p.Owns(b) {
				t.Errorf("MR of %s: %v, %v", name, r, err)
			}
		}
		free(t, p, a)
		free(t, q, other)
	}
}

// TestTail: the end of a span that is too short for an object is no object, not
// even where its offset is a multiple of the size.
func TestTail(t *testing.T) {
	p := newPool(t, Config{noJanitor: true})
	a := must(t)(p.Alloc(640))
	ci := classes[classFor(640)]
	start := p.mem.offset(a) &^ (unitSize - 1)
	if ci.limit == unitSize {
		t.Fatal("no tail")
	}
	if err := p.Free(p.mem.view(start+uint64(ci.limit), 1)); !errors.Is(err, ErrBadFree) {
		t.Errorf("free of the tail: %v", err)
	}
	if p.Owns(p.mem.view(start+uint64(ci.limit), 1)) {
		t.Error("the tail counts as an object")
	}
	free(t, p, a)
}

func TestDebugEnv(t *testing.T) {
	t.Setenv("BEMALLOC_DEBUG", "check,poison, quarantine=4096,sites,guard")
	p := newPool(t, Config{})
	if want := (Debug{true, true, 4096, true, true}); p.cfg.Debug != want || p.dbg == nil {
		t.Errorf("debug is %+v, want %+v", p.cfg.Debug, want)
	}
	for _, bad := range []string{"chekc", "quarantine", "quarantine=-1"} {
		t.Setenv("BEMALLOC_DEBUG", bad)
		if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "BEMALLOC_DEBUG") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
