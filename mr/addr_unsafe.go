package mr

import "unsafe"

// Addr gives the address of b's first byte, as work requests and peers use it.
// It is 0 for a slice without storage. The number does not keep b alive: b must
// be memory from mmap.
func Addr(b []byte) uint64 {
	if cap(b) == 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
