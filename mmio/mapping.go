package mmio

import (
	"fmt"
	"sync/atomic"
)

// Mapping is memory from mmap, shared with a driver or device. It must be closed
// once; nothing may use its bytes or pointers afterwards. It is not safe for use
// by several goroutines at once; what it maps may be.
type Mapping struct {
	b []byte
}

var live atomic.Int64

// Live is the number of mappings that are open in this process. Tests compare it
// before and after to find leaks.
func Live() int { return int(live.Load()) }

// Bytes is the mapped memory.
func (m *Mapping) Bytes() []byte { return m.b }

// Uint32 is a pointer to the 4-byte word at an offset, for LoadUint32,
// StoreUint32 and Store32. It panics when the word is not in the mapping or not
// aligned: offsets are checked when a layout is read.
func (m *Mapping) Uint32(off int) *uint32 {
	m.check(off, 4)
	return uint32At(m.b, off)
}

// Uint64 is a pointer to the 8-byte register at an offset, as Uint32.
func (m *Mapping) Uint64(off int) *uint64 {
	m.check(off, 8)
	return uint64At(m.b, off)
}

func (m *Mapping) check(off, size int) {
	if off < 0 || off > len(m.b)-size || off%size != 0 {
		panic(fmt.Sprintf("mmio: %d-byte word at offset %d of a mapping of %d bytes", size, off, len(m.b)))
	}
}
