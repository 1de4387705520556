package bemalloc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/mr"
)

// model drives a pool with arbitrary operations and compares it with a plain list
// of what is live.
type model struct {
	t     testing.TB
	p     *Pool
	dev   *registrar
	clock *clock
	heaps []*Heap
	live  []liveSlice
	owner map[uint64]int // unit of memory to the large buffer on it, by tag
	lines map[uint64]int // 64-byte line to the small buffer on it
	small map[uint64]int // small buffers in a unit
	tag   int
}

type liveSlice struct {
	b   []byte
	tag int
}

func newModel(t testing.TB, cfg Config) *model {
	m := &model{t: t, dev: newRegistrar(t), clock: newClock(), owner: map[uint64]int{}, lines: map[uint64]int{}, small: map[uint64]int{}}
	cfg.Registrar, cfg.now, cfg.noJanitor = m.dev, m.clock.now, true
	cfg.ReserveBytes = 1 << 30
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 96 << 20
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.p = p
	for _, o := range heapOptions {
		m.heaps = append(m.heaps, p.NewHeap(o))
	}
	return m
}

// heapOptions are those of the model's heaps.
var heapOptions = [3]HeapOptions{2: {QuotaBytes: 9 << 20}}

// edges are the sizes around which sizes are drawn.
var edges = func() (e []int) {
	for _, c := range classes {
		e = append(e, int(c.size))
	}
	return append(e, 48<<10, 64<<10, 128<<10, 1<<20, 4<<20-unitSize, 4<<20, 8<<20)
}()

// size turns three bytes of input into a size: near an edge, mostly small.
func size(a, b, c byte) int {
	e := edges[int(a)%len(edges)]
	if e > 256<<10 && b%4 != 0 {
		e = edges[int(b)%numClasses]
	}
	return max(e-1+int(c%3), 0)
}

// step does one operation, chosen by op and its four arguments.
func (m *model) step(op byte, arg [4]byte) {
	m.t.Helper()
	switch op % 16 {
	case 0, 1, 2, 3, 4, 5:
		m.alloc(size(arg[0], arg[1], arg[2]), 1, int(arg[3]))
	case 6:
		m.alloc(size(arg[0], arg[1], arg[2]), 1<<(arg[3]%23), int(arg[3]>>6))
	case 7, 8, 9, 10, 11:
		m.free(int(arg[0])|int(arg[1])<<8, int(arg[3]))
	case 12:
		m.refused(arg)
	case 13:
		m.p.Trim(int64(arg[0]) << 19)
	case 14:
		m.clock.advance(time.Duration(arg[0]) * 100 * time.Millisecond)
		m.p.tick(m.clock.now())
	case 15:
		h := int(arg[0]) % len(m.heaps)
		if err := m.heaps[h].Close(); err != nil {
			m.t.Fatal(err)
		}
		m.heaps[h] = m.p.NewHeap(heapOptions[h])
	}
}

func (m *model) alloc(n, align, from int) {
	m.t.Helper()
	var b []byte
	var err error
	if h := from % 4; h < len(m.heaps) {
		b, err = m.heaps[h].AllocAligned(n, align)
	} else {
		b, err = m.p.AllocAligned(n, align)
	}
	if err != nil {
		if !errors.Is(err, ErrLimit) {
			m.t.Fatalf("alloc %d: %v", n, err)
		}
		return
	}
	m.tag++
	if len(b) != n || cap(b) != n {
		m.t.Fatalf("alloc %d: len %d, cap %d", n, len(b), cap(b))
	}
	addr := mr.Addr(b)
	if addr%objAlign != 0 || addr%uint64(align) != 0 {
		m.t.Fatalf("alloc %d aligned %d: %#x", n, align, addr)
	}
	m.claim(b, m.tag)
	m.write(b, m.tag)
	m.checkRegion(b)
	m.live = append(m.live, liveSlice{b, m.tag})
}

// claim notes that b's memory belongs to the buffer with a tag, or to none (0). No
// other buffer may be there.
func (m *model) claim(b []byte, tag int) {
	m.t.Helper()
	addr, end := mr.Addr(b), mr.Addr(b)+uint64(max(len(b), 1))-1
	if len(b) > maxSmall {
		for u := addr / unitSize; u <= end/unitSize; u++ {
			if tag != 0 && (m.owner[u] != 0 || m.small[u] != 0) {
				m.t.Fatalf("buffer %d of %d bytes at %#x overlaps buffer %d or %d small ones", tag, len(b), addr, m.owner[u], m.small[u])
			}
			m.owner[u] = tag
		}
		return
	}
	for u := addr / unitSize; u <= end/unitSize; u++ {
		if tag == 0 {
			m.small[u]--
			continue
		}
		m.small[u]++
		if m.owner[u] != 0 {
			m.t.Fatalf("buffer %d of %d bytes at %#x overlaps buffer %d", tag, len(b), addr, m.owner[u])
		}
	}
	for line := addr / objAlign; line <= end/objAlign; line++ {
		if tag != 0 && m.lines[line] != 0 {
			m.t.Fatalf("buffer %d of %d bytes at %#x overlaps buffer %d", tag, len(b), addr, m.lines[line])
		}
		m.lines[line] = tag
	}
}

// write tags both ends of b and one byte a page.
func (m *model) write(b []byte, tag int) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = byte(tag + i>>12)
	}
	if len(b) > 0 {
		b[len(b)-1] = byte(tag >> 8)
		b[0] = byte(tag)
	}
}

func (m *model) checkTags(l liveSlice) {
	m.t.Helper()
	b := l.b
	for i := range b {
		if i%4096 != 0 && i != len(b)-1 {
			continue
		}
		want := byte(l.tag + i>>12)
		if i == len(b)-1 && i != 0 {
			want = byte(l.tag >> 8)
		}
		if b[i] != want {
			m.t.Fatalf("buffer %d of %d bytes: byte %d is %#x, want %#x", l.tag, len(b), i, b[i], want)
		}
	}
}

// checkRegion holds MR to what the device was told, for the whole buffer, its
// middle and its end; and past the end.
func (m *model) checkRegion(b []byte) {
	m.t.Helper()
	for _, part := range [][]byte{b, b[len(b)/2:], b[max(len(b)-1, 0):]} {
		r, err := m.p.MR(part)
		if err != nil {
			m.t.Fatalf("MR of %d bytes: %v", len(part), err)
		}
		if m.dev.live[r.Handle] != r || !r.Contains(mr.Addr(part), uint64(len(part))) {
			m.t.Fatalf("MR of %#x+%d is %v", mr.Addr(part), len(part), r)
		}
	}
}

func (m *model) free(which, from int) {
	m.t.Helper()
	if len(m.live) == 0 {
		return
	}
	i := which % len(m.live)
	l := m.live[i]
	m.live[i] = m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	m.checkTags(l)
	m.claim(l.b, 0)
	b := l.b
	if from%5 == 4 && len(b) > 1 {
		b = b[:1]
	}
	var err error
	if h := from % 4; h < len(m.heaps) {
		err = m.heaps[h].Free(b)
	} else {
		err = m.p.Free(b)
	}
	if err != nil {
		m.t.Fatalf("free of buffer %d, %d bytes: %v", l.tag, len(l.b), err)
	}
}

// refused tries frees that must fail and change nothing.
func (m *model) refused(arg [4]byte) {
	m.t.Helper()
	if err := m.p.Free(make([]byte, 1+int(arg[0]))); !errors.Is(err, ErrBadFree) {
		m.t.Fatalf("free of Go memory: %v", err)
	}
	if len(m.live) == 0 {
		return
	}
	b := m.live[int(arg[1])%len(m.live)].b
	if len(b) < 2 {
		return
	}
	k := 1 + (int(arg[2])|int(arg[3])<<8)%(len(b)-1)
	if err := m.p.Free(b[k:]); !errors.Is(err, ErrBadFree) {
		m.t.Fatalf("free of %d bytes from byte %d: %v", len(b), k, err)
	}
}

// checkStats holds the statistics to their sum and to the list.
func (m *model) checkStats() {
	m.t.Helper()
	s := m.p.Stats()
	if err := addsUp(s); err != nil {
		m.t.Fatal(err)
	}
	var large int64
	var inUse [numClasses]int64
	used := map[uint32]int64{}
	for _, l := range m.live {
		off := m.p.mem.offset(l.b)
		w := m.p.table.words[off>>unitShift]
		owner, bytes := m.p.table.span(uint32(off>>unitShift)).owner, int64(0)
		switch {
		case w.isHead():
			bytes = int64(w.length()) << unitShift
			large += bytes
		case w.kind() == kindOwned:
			s := m.p.table.span(uint32(off>>unitShift) - w.back())
			inUse[s.class]++
			owner, bytes = s.owner, int64(classes[s.class].size)
		default:
			inUse[w.kind()-kindClass]++
			owner = 0
		}
		if owner != 0 {
			used[owner] += bytes
		}
	}
	if s.LargeBytes != large {
		m.t.Fatalf("stats: %d bytes of large buffers, want %d", s.LargeBytes, large)
	}
	for c := range inUse {
		if s.Classes[c].InUse != inUse[c] {
			m.t.Fatalf("stats: class of %d bytes: %+v, want %d in use", classes[c].size, s.Classes[c], inUse[c])
		}
	}
	for _, q := range *m.p.quotas.Load() {
		if q != nil && q.used != used[q.id] {
			m.t.Fatalf("heap %d: %d bytes counted, want %d", q.id, q.used, used[q.id])
		}
	}
	if s.RegisteredBytes > m.p.cfg.MaxBytes || s.Regions != m.dev.regions() {
		m.t.Fatalf("stats: %d bytes in %d regions, device has %d", s.RegisteredBytes, s.Regions, m.dev.regions())
	}
}

// addsUp checks the sum that Stats promises.
func addsUp(s Stats) error {
	sum := s.FreeBytes + s.LargeBytes + s.CachedLargeBytes
	for _, c := range s.Classes {
		sum += (c.InUse+c.Cached+c.Free)*int64(c.Size) + c.WasteBytes
		if c.InUse < 0 || c.Cached < 0 || c.Free < 0 {
			return fmt.Errorf("stats: negative count: %+v", c)
		}
	}
	if sum != s.RegisteredBytes {
		return fmt.Errorf("stats: parts sum to %d, registered is %d: %+v", sum, s.RegisteredBytes, s)
	}
	return nil
}

// finish frees everything and checks that nothing is left.
func (m *model) finish() {
	m.t.Helper()
	if len(m.live) > 0 {
		if err := m.p.Close(); !errors.Is(err, ErrLeak) {
			m.t.Fatalf("close with %d buffers in use: %v", len(m.live), err)
		}
	}
	for len(m.live) > 0 {
		m.free(0, m.tag)
		m.tag++
	}
	for _, h := range m.heaps {
		if err := h.Close(); err != nil {
			m.t.Fatal(err)
		}
	}
	m.p.Trim(0)
	m.checkStats()
	if s := m.p.Stats(); s.RegisteredBytes != 0 || m.dev.regions() != 0 {
		m.t.Fatalf("after Trim(0): %d bytes registered, %d regions", s.RegisteredBytes, m.dev.regions())
	}
	if err := m.p.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) run(rng *rand.Rand, steps int) {
	for i := range steps {
		x := rng.Uint64()
		m.step(byte(x), [4]byte{byte(x >> 8), byte(x >> 16), byte(x >> 24), byte(x >> 32)})
		if i%16 == 0 {
			m.checkStats()
		}
	}
}

func TestModel(t *testing.T) {
	rng := newRand(t)
	for _, debug := range []Debug{{}, {Check: true}, {Poison: true, Sites: true, Guard: true}} {
		t.Run(fmt.Sprintf("debug=%+v", debug), func(t *testing.T) {
			kinds(t, func(t *testing.T, cfg Config) {
				cfg.Debug = debug
				m := newModel(t, cfg)
				m.run(rng, 3000)
				m.finish()
			})
		})
	}
}

// FuzzOps feeds arbitrary operation sequences to the model: five bytes a step.
func FuzzOps(f *testing.F) {
	f.Add([]byte("0123456789abcdefghij"), false)
	f.Add([]byte{0, 38, 0, 1, 0, 13, 0, 0, 0, 0, 7, 0, 0, 0, 0, 13, 0, 0, 0, 0}, true)
	f.Add([]byte{6, 31, 9, 0, 22, 0, 0, 0, 0, 0, 12, 1, 0, 9, 9, 14, 255, 0, 0, 0, 15, 0, 0, 0, 0}, false)
	f.Fuzz(func(t *testing.T, ops []byte, shards bool) {
		m := newModel(t, Config{forceShards: shards, MaxBytes: 32 << 20})
		for ; len(ops) >= 5; ops = ops[5:] {
			m.step(ops[0], [4]byte(ops[1:5]))
		}
		m.checkStats()
		m.finish()
	})
}
