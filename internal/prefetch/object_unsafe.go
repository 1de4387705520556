package prefetch

import "unsafe"

// Object gets all of what p points to; p may be nil.
func Object[T any](p *T) { lines(uintptr(unsafe.Pointer(p)), unsafe.Sizeof(*p)) }

// Of gets the first n bytes of what v points to, if it is a pointer.
func Of(v any, n uint64) { lines((*[2]uintptr)(unsafe.Pointer(&v))[1], uintptr(n)) }

// Memory gets the n bytes at an address.
func Memory(addr, n uint64) { lines(uintptr(addr), uintptr(n)) }
