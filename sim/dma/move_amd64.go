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

// moveAround copies src to dst past the caches, without overlap.
func moveAround(dst, src []byte) {
	if cpu.X86.HasAVX {
		moveStream(dst, src)
	} else {
		copy(dst, src)
	}
}

// moveStream is streaming stores: what was written is there for everybody when it returns.
// It has the cache get what it reads next, a page ahead, for this one use: processors
// do so themselves only within a page, and only when they have seen some lines of it. It
// also leaves the caches to others.
//
//go:noescape
func moveStream(dst, src []byte)

// moveString is REP MOVSB. Processors with ERMS write whole lines by it without reading
// them (Intel 64 and IA-32 optimization manual, section 3.7.6).
//
//go:noescape
func moveString(dst, src []byte)
