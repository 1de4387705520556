//go:build !amd64 && !arm64

package mmio

import "unsafe"

func storeBlock(dst *uint64, src *byte) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(dst)), BlockSize), unsafe.Slice(src, BlockSize))
}
