package prefetch

import "unsafe"

// Object gets all of what p points to; p may be nil. To take the address of a field would
// look at the object, to see that there is one: for fields there is Part.
func Object[T any](p *T) { lines(uintptr(unsafe.Pointer(p)), unsafe.Sizeof(*p)) }

// Part gets n bytes of what p points to, from a byte on.
func Part[T any](p *T, from, n uintptr) { lines(uintptr(unsafe.Pointer(p))+from, n) }

// Of gets the first n bytes of what v points to, if it is a pointer.
func Of(v any, n uint64) { lines((*[2]uintptr)(unsafe.Pointer(&v))[1], uintptr(n)) }

// Memory gets the n bytes at an address.
func Memory(addr, n uint64) { lines(uintptr(addr), uintptr(n)) }
