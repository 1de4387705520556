package hugepage

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Heap asks for huge pages for the next n bytes by which the heap grows. It is a hint:
// no memory is used before it is allocated, and a system without huge pages does
// without. It runs the garbage collector.
func Heap(n int) {
	// A piece of memory that is not written to is only addresses. The advice stays with
	// them when the collector takes it back and cuts what is allocated from it.
	b := make([]byte, n)
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	b = nil
	runtime.GC()
}
