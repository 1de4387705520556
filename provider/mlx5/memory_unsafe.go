package mlx5

import "unsafe"

// memory is the n bytes at an address that a request named: registered memory of
// this process.
func memory(addr uint64, n int) []byte {
	p := uintptr(addr)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n)
}
