//go:build linux

package mlx5dev

import "unsafe"

// memory is the n bytes at an address of this process that a request names. The
// NIC reads and writes a process's memory by address; so does its model.
func memory(addr uint64, n int) []byte {
	p := uintptr(addr)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n)
}

// word is the 32-bit word at the start of b, whose address is divisible by 4.
func word(b []byte) *uint32 { return (*uint32)(unsafe.Pointer(unsafe.SliceData(b))) }
