//go:build amd64 || arm64

package mmio

// HasBarriers reports that the barriers and register stores of this package are
// those of the processor, so that a hardware doorbell may be driven.
const HasBarriers = true

// Doorbell stores count to a doorbell record in memory, after everything before it,
// then v to a device register, each with one plain store. The device sees them in
// this order; later stores are not combined with the second, and it does not stay in
// the processor. (amd64 MOVL, then SFENCE around MOVQ; arm64 DMB OSHST and STR, then
// DSB ST around STR.)
//
//go:noescape
func Doorbell(record *uint32, count uint32, p *uint64, v uint64)

// Store32 stores v to memory that a device reads, with one plain 32-bit store.
//
//go:noescape
func Store32(p *uint32, v uint32)

// Release32 stores v to memory that another goroutine reads, after every earlier
// load and store. (amd64 MOVL; arm64 STLRW.)
//
//go:noescape
func Release32(p *uint32, v uint32)
