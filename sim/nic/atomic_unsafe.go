package nic

import (
	"sync/atomic"
	"unsafe"
)

// Atomics run as the processor's own on the memory itself, so that they are
// atomic towards every NIC and goroutine of the process. Preconditions: b holds
// 8 bytes at an address divisible by 8.

func compareSwap(b []byte, compare, swap uint64) (old uint64) {
	p := (*uint64)(unsafe.Pointer(unsafe.SliceData(b)))
	for {
		old = atomic.LoadUint64(p)
		if old != compare || atomic.CompareAndSwapUint64(p, compare, swap) {
			return old
		}
	}
}

func fetchAdd(b []byte, add uint64) (old uint64) {
	p := (*uint64)(unsafe.Pointer(unsafe.SliceData(b)))
	return atomic.AddUint64(p, add) - add
}
