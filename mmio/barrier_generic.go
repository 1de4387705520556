//go:build !amd64 && !arm64

package mmio

import "sync/atomic"

// HasBarriers reports whether the barriers and register stores of this package
// are those of the processor. Here they are not: do not drive hardware doorbells.
const HasBarriers = false

var fence atomic.Uint32

// WriteBarrier orders stores between goroutines only.
func WriteBarrier() { fence.Add(0) }

// ReadBarrier orders loads between goroutines only.
func ReadBarrier() { fence.Add(0) }

// Doorbell stores both atomically.
func Doorbell(record *uint32, count uint32, p *uint64, v uint64) {
	atomic.StoreUint32(record, count)
	atomic.StoreUint64(p, v)
}

// Store32 stores v atomically.
func Store32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

// Release32 stores v atomically.
func Release32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
