package mmio

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

// BE32 is v as a device wants it that reads words big-endian.
func BE32(v uint32) uint32 {
	if littleEndian {
		return bits.ReverseBytes32(v)
	}
	return v
}

// BE64 is v as a device wants it that reads words big-endian.
func BE64(v uint64) uint64 {
	if littleEndian {
		return bits.ReverseBytes64(v)
	}
	return v
}

// A constant, so that nothing is left of the choice in a program.
const littleEndian = runtime.GOARCH != "s390x" && runtime.GOARCH != "ppc64" && runtime.GOARCH != "mips" && runtime.GOARCH != "mips64"

// StoreBE32 stores v big-endian with one 32-bit store, to a doorbell record.
func StoreBE32(p *uint32, v uint32) { Store32(p, BE32(v)) }

// LoadUint32 reads a word that a kernel driver writes. Loads that follow see
// what the driver stored before it.
func LoadUint32(p *uint32) uint32 { return atomic.LoadUint32(p) }

// StoreUint32 writes a word that a kernel driver reads. The driver sees earlier
// stores before it.
func StoreUint32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
