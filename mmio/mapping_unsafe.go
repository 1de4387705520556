package mmio

import "unsafe"

// uint32At and uint64At are called with checked offsets into mmap memory, whose
// first byte is page-aligned.

func uint32At(b []byte, off int) *uint32 { return (*uint32)(unsafe.Pointer(&b[off])) }

func uint64At(b []byte, off int) *uint64 { return (*uint64)(unsafe.Pointer(&b[off])) }
