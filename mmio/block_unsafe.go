//go:build !amd64 && !arm64

package mmio

import (
	"sync/atomic"
	"unsafe"
)

// DoorbellBlocks stores count atomically and copies the blocks of src to dst.
func DoorbellBlocks(record *uint32, count uint32, dst *uint64, src []byte) {
	atomic.StoreUint32(record, count)
	n := len(src) / BlockSize * BlockSize
	copy(unsafe.Slice((*byte)(unsafe.Pointer(dst)), n), src[:n])
}
