//go:build !race && !msan && !asan

package dma

import "golang.org/x/sys/cpu"

// lineBytes is what dst of moveAround and moveThrough is aligned to and its length is a
// multiple of: a cache line.
const lineBytes = 64

// moveThrough copies src to dst through the caches, without overlap.
func moveThrough(dst, src []byte) {
	if cpu.X86.HasERMS {
		moveString(dst, src)
	} else {
		copy(dst, src)
	}
}

// moveAround copies src to dst without overlap, past the caches: what was written is
// there for everybody when it returns.
//
//go:noescape
func moveAround(dst, src []byte)

// moveString is REP MOVSB. Processors with ERMS write whole lines by it without reading
// them (Intel 64 and IA-32 optimization manual, section 3.7.6).
//
//go:noescape
func moveString(dst, src []byte)
