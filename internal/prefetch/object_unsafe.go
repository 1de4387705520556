package prefetch

import "unsafe"

// Object gets all of what p points to; p may be nil.
func Object[T any](p *T) { lines(uintptr(unsafe.Pointer(p)), unsafe.Sizeof(*p)) }

// Memory gets the n bytes at an address.
func Memory(addr, n uint64) { lines(uintptr(addr), uintptr(n)) }
