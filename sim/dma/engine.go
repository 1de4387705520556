package dma

import (
	"github.com/byteexpress/byteexpress/internal/prefetch"
	"github.com/byteexpress/byteexpress/mr"
)

const (
	// long is from how many bytes on it pays: either way takes some 100 ns to begin.
	long = 16 << 10
	// expected is how much of what comes next is fetched ahead: a page.
	expected = 4 << 10
	// warmBytes is how many bytes are moved until a place is in no cache any more. The
	// last level of a server's processor has 16 to 64 MiB, for what is read too.
	warmBytes = 12 << 20

	// Places are told apart by granuleBits, and 1<<placeBits of them are remembered: many
	// times warmBytes, so that few share an entry.
	granuleBits = 16
	placeBits   = 12
)

// Engine moves bytes for one NIC. It remembers which places it has written lately. The
// zero value is ready; it is for one goroutine at a time.
type Engine struct {
	moved uint64   // long moves' bytes
	last  []uint64 // moved when a place was written last, by a hash of its address
}

// entry is a place's. Two that share one may make a cold place look warm.
func (e *Engine) entry(granule uint64) *uint64 {
	return &e.last[granule*0x9e3779b97f4a7c15>>(64-placeBits)] // 2^64 by the golden ratio
}

// written counts n bytes that are written at addr, and reports whether the place is in
// no cache.
func (e *Engine) written(addr, n uint64) (cold bool) {
	if e.last == nil {
		e.last = make([]uint64, 1<<placeBits) // most NICs of a simulated network need none
	}
	at := *e.entry(addr >> granuleBits)
	e.moved += n
	for g := addr >> granuleBits; g <= (addr+n-1)>>granuleBits; g++ {
		*e.entry(g) = e.moved
	}
	return at == 0 || e.moved-at > warmBytes
}

// Copy copies src to dst, which is as long. They may overlap.
func (e *Engine) Copy(dst, src []byte) {
	if len(src) < long || overlap(dst, src) {
		copy(dst, src)
		return
	}
	head := int(-mr.Addr(dst) % lineBytes)
	body := (len(src) - head) &^ (lineBytes - 1)
	copy(dst[:head], src)
	if e.written(mr.Addr(dst), uint64(len(dst))) {
		moveAround(dst[head:][:body], src[head:])
	} else {
		moveThrough(dst[head:][:body], src[head:])
	}
	copy(dst[head+body:], src[head+body:])
}

// Expect has the cache get how src begins. It is called before the Copy that comes
// before that of src: the processor begins with a new place as fast then as it goes on with
// an old one.
func Expect(src []byte) {
	if len(src) >= long {
		prefetch.Object((*[expected]byte)(src))
	}
}

func overlap(a, b []byte) bool {
	x, y := mr.Addr(a), mr.Addr(b)
	return x-y < uint64(len(b)) || y-x < uint64(len(a))
}
