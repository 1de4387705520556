package mmio

import (
	"encoding/binary"
	"sync/atomic"
)

// StoreBE64 stores v big-endian to a device register with one 64-bit store.
func StoreBE64(p *uint64, v uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	Store64(p, binary.NativeEndian.Uint64(b[:]))
}

// StoreBE32 stores v big-endian with one 32-bit store: a register, or a doorbell
// record in memory.
func StoreBE32(p *uint32, v uint32) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	Store32(p, binary.NativeEndian.Uint32(b[:]))
}

// LoadUint32 reads a word that a kernel driver writes. Loads that follow see
// what the driver stored before it.
func LoadUint32(p *uint32) uint32 { return atomic.LoadUint32(p) }

// StoreUint32 writes a word that a kernel driver reads. The driver sees earlier
// stores before it.
func StoreUint32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
