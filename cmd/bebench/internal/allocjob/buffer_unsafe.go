package allocjob

import "unsafe"

// stamp writes a buffer's size to its first 8 bytes, as the definition asks.
func stamp(b []byte) { *(*uint64)(unsafe.Pointer(unsafe.SliceData(b))) = uint64(len(b)) }

// stamped reads the size back.
func stamped(p *byte) uint64 { return *(*uint64)(unsafe.Pointer(p)) }

// first gives the pointer that stands for a buffer in slots and batches, as in a
// C program.
func first(b []byte) *byte { return unsafe.SliceData(b) }

// buffer makes the slice again, of any length: Free knows it by its start.
func buffer(p *byte) []byte { return unsafe.Slice(p, 1) }
