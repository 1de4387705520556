package bemalloc

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Debug turns on checks, each on its own. With any of them every call goes to
// the central lists. BEMALLOC_DEBUG adds to it.
type Debug struct {
	// Check finds every double free at the second Free.
	Check bool
	// Poison fills free memory and verifies the filling on allocation: a use after
	// free, or a late write by a device, is a *CorruptError from Alloc, and that
	// memory is not used again.
	Poison bool
	// QuarantineBytes of freed buffers wait, first in first out, before reuse, unless
	// an allocation would fail or wait for them.
	QuarantineBytes int64
	// Sites records the stack of every live allocation for LeakError, and of the
	// last free for CorruptError.
	Sites bool
	// Guard puts 64 bytes behind every buffer and verifies them on free: an overrun
	// is a *CorruptError from Free, and the buffer is free.
	Guard bool
}

// Debug is what the pool checks: that of its Config, and what BEMALLOC_DEBUG adds.
func (p *Pool) Debug() Debug { return p.cfg.Debug }

const (
	poisonByte = 0xDB
	guardByte  = 0xA5
	guardBytes = objAlign
	siteFrames = 8
	ownFrames  = 4 // at most this many of a stack's frames are the pool's own

	// ownPrefix starts the names of the pool's methods, which a stack leaves out.
	ownPrefix = "github.com/byteexpress/byteexpress/bemalloc.(*"
)

// fromEnv adds what BEMALLOC_DEBUG names.
func (d *Debug) fromEnv() error {
	for _, word := range strings.FieldsFunc(os.Getenv("BEMALLOC_DEBUG"), func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "check":
			d.Check = true
		case "poison":
			d.Poison = true
		case "sites":
			d.Sites = true
		case "guard":
			d.Guard = true
		case "quarantine":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return fmt.Errorf("bemalloc: BEMALLOC_DEBUG: quarantine=%q is no byte count", value)
			}
			d.QuarantineBytes = n
		default:
			return fmt.Errorf("bemalloc: BEMALLOC_DEBUG: unknown check %q, want check, poison, quarantine=BYTES, sites or guard", word)
		}
	}
	return nil
}

// CorruptError says that memory was written by somebody who did not own it.
type CorruptError struct {
	What    string   // "use after free or late device write", or "overrun"
	Addr    uint64   // start of the buffer
	Bytes   int      // its size
	Offset  int      // first wrong byte, from the start
	FreedAt []string // who freed it last, with Debug.Sites
}

// Error names the buffer, the first wrong byte and, if known, the freeing site.
func (e *CorruptError) Error() string {
	s := fmt.Sprintf("bemalloc: %s: buffer %#x of %d bytes is damaged at offset %d", e.What, e.Addr, e.Bytes, e.Offset)
	if len(e.FreedAt) > 0 {
		s += "; freed at:\n\t" + strings.Join(e.FreedAt, "\n\t")
	}
	return s
}

// site is the stack of a call into the pool, innermost frame first.
type site [siteFrames + ownFrames]uintptr

// debugger wraps allocation and free with the checks. Its methods work on nil.
type debugger struct {
	p   *Pool
	cfg Debug

	mu     sync.Mutex
	live   map[uint64]liveBuffer // by offset
	freed  map[uint64]site       // last free of an offset, with Sites
	queue  [][]byte              // quarantine, oldest first, each of its full size
	queued int64                 // bytes in it
}

type liveBuffer struct {
	n    int // as asked for
	site site
}

func newDebugger(p *Pool, cfg Debug) *debugger {
	if cfg == (Debug{}) {
		return nil
	}
	return &debugger{p: p, cfg: cfg, live: map[uint64]liveBuffer{}, freed: map[uint64]site{}}
}

// tracked tells whether live buffers must be known one by one.
func (d *debugger) tracked() bool {
	return d.cfg.Poison || d.cfg.QuarantineBytes > 0 || d.cfg.Sites || d.cfg.Guard
}

// fresh prepares a block's memory before its first use.
func (d *debugger) fresh(mem []byte) {
	if d != nil && d.cfg.Poison {
		fill(mem, poisonByte)
	}
}

func (d *debugger) alloc(h *Heap, n, align int) ([]byte, error) {
	tail := 0
	if d.cfg.Guard {
		tail = guardBytes
	}
	if n > math.MaxInt-tail {
		return nil, d.p.tooLarge(int64(n))
	}
	off, err := d.p.allocateOwn(h, n+tail, align)
	if err != nil && d.quarantined() > 0 {
		d.drain()
		off, err = d.p.allocateOwn(h, n+tail, align)
	}
	if err != nil || !d.tracked() {
		if err != nil {
			return nil, err
		}
		return d.p.mem.view(off, n), nil
	}
	full := d.p.mem.view(off, d.p.usable(off))
	if d.cfg.Poison {
		if i := differs(full, poisonByte); i >= 0 {
			d.mu.Lock()
			at := d.freed[off]
			d.mu.Unlock()
			d.p.counters.corruptions.Add(1)
			return nil, &CorruptError{"use after free or late device write", d.p.mem.addr + off, len(full), i, at.frames()}
		}
	}
	if tail > 0 {
		fill(full[n:n+tail], guardByte)
	}
	b := liveBuffer{n: n}
	if d.cfg.Sites {
		b.site = here()
	}
	d.mu.Lock()
	d.live[off] = b
	d.mu.Unlock()
	return d.p.mem.view(off, n), nil
}

func (d *debugger) free(b []byte) error {
	if !d.tracked() {
		return d.p.freeOne(nil, b)
	}
	off := d.p.mem.offset(b)
	d.mu.Lock()
	buf, ok := d.live[off]
	delete(d.live, off)
	if ok && d.cfg.Sites {
		d.freed[off] = here()
	}
	d.mu.Unlock()
	if !ok {
		return d.stray(b)
	}
	full := d.p.mem.view(off, d.p.usable(off))
	var damage error
	if d.cfg.Guard {
		if i := differs(full[buf.n:buf.n+guardBytes], guardByte); i >= 0 {
			d.p.counters.corruptions.Add(1)
			damage = &CorruptError{"overrun", d.p.mem.addr + off, buf.n, buf.n + i, nil}
		}
	}
	if d.cfg.Poison {
		fill(full, poisonByte)
	}
	d.mu.Lock()
	d.queue = append(d.queue, full)
	d.queued += int64(len(full))
	keep := d.cfg.QuarantineBytes
	if d.p.someoneWaits() {
		keep = 0
	}
	due := d.due(keep)
	d.mu.Unlock()
	for _, b := range due {
		if err := d.p.freeOne(nil, b); err != nil && damage == nil {
			damage = err
		}
	}
	return damage
}

// stray names the fault of freeing something that is not live.
func (d *debugger) stray(b []byte) error {
	if d.p.starts(d.p.mem.offset(b)) {
		d.p.counters.doubleFrees.Add(1)
		return ErrDoubleFree
	}
	d.p.counters.badFrees.Add(1)
	return ErrBadFree
}

// due takes from the quarantine what exceeds keep bytes. Called under the lock.
func (d *debugger) due(keep int64) [][]byte {
	n := 0
	for ; d.queued > keep; n++ {
		d.queued -= int64(len(d.queue[n]))
	}
	due := d.queue[:n:n]
	d.queue = d.queue[n:]
	return due
}

// drain ends the quarantine.
func (d *debugger) drain() {
	if d == nil {
		return
	}
	d.mu.Lock()
	due := d.due(0)
	d.mu.Unlock()
	for _, b := range due {
		_ = d.p.freeOne(nil, b) // was live when it was queued
	}
}

// quarantined gives the bytes that wait.
func (d *debugger) quarantined() int64 {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queued
}

// sites groups what is live by its place of allocation.
func (d *debugger) sites() []LeakSite {
	if d == nil || !d.cfg.Sites {
		return nil
	}
	d.mu.Lock()
	by := map[site]*LeakSite{}
	for _, b := range d.live {
		l := by[b.site]
		if l == nil {
			l = &LeakSite{Stack: b.site.frames()}
			by[b.site] = l
		}
		l.Count++
		l.Bytes += int64(b.n)
	}
	d.mu.Unlock()
	var all []LeakSite
	for _, l := range by {
		all = append(all, *l)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Bytes > all[j].Bytes })
	return all
}

// here gives the stack of the caller of the pool.
func here() (s site) {
	const skip = 3 // Callers, here, and its caller
	runtime.Callers(skip, s[:])
	return s
}

func (s site) frames() (lines []string) {
	n := 0
	for n < len(s) && s[n] != 0 {
		n++
	}
	for it := runtime.CallersFrames(s[:n]); n > 0; {
		f, more := it.Next()
		if len(lines) > 0 || !strings.HasPrefix(f.Function, ownPrefix) {
			lines = append(lines, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		}
		if !more || len(lines) == siteFrames {
			break
		}
	}
	return lines
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// differs gives the index of the first byte that is not v, or -1.
func differs(b []byte, v byte) int {
	for i, x := range b {
		if x != v {
			return i
		}
	}
	return -1
}
