//go:build !amd64 && !arm64

package mmio

import (
	"sync/atomic"
	"unsafe"
)

func doorbellBlocks(record *uint32, count uint32, dst *uint64, src *byte, n int) {
	atomic.StoreUint32(record, count)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(dst)), n*BlockSize), unsafe.Slice(src, n*BlockSize))
}
