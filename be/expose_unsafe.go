package be

import (
	"encoding/binary"
	"unsafe"
)

// storeShared stores 8 bytes, aligned, that devices may be reading. That is beside Go's
// memory model, so the race detector is not to look: a simulated device reads as a real
// one does.
//
//go:norace
func storeShared(b []byte, v uint64) {
	var le [8]byte
	binary.LittleEndian.PutUint64(le[:], v)
	*(*uint64)(unsafe.Pointer(&b[0])) = *(*uint64)(unsafe.Pointer(&le[0]))
}
