package bemalloc

import (
	"math"
	"unsafe"

	"github.com/byteexpress/byteexpress/mr"
)

// memory is the reservation, from a block boundary on. Slices into it are made
// from its one base pointer, never from an integer.
type memory struct {
	base     unsafe.Pointer
	addr     uint64 // the same as a number
	size     uint64 // bytes, whole blocks
	reserved []byte // what the system gave, to give back
}

// newMemory reserves size bytes aligned to a block, or half as much until the
// system grants it.
func newMemory(size int64) (memory, error) {
	for ; ; size = roundUp(size/2, blockSize) {
		var err error
		if size <= math.MaxInt-blockSize {
			var all []byte
			if all, err = reserve(int(size) + blockSize); err == nil {
				addr := mr.Addr(all)
				skip := -addr & (blockSize - 1)
				return memory{
					base:     unsafe.Add(unsafe.Pointer(unsafe.SliceData(all)), skip),
					addr:     addr + skip,
					size:     uint64(size),
					reserved: all,
				}, nil
			}
		}
		if size <= blockSize {
			return memory{}, noMemory("reserve address space", err)
		}
	}
}

// offset gives b's start relative to the base; at least size for a slice that
// starts elsewhere.
func (m *memory) offset(b []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) - m.addr
}

// view gives the n bytes at off, which the caller allocated.
func (m *memory) view(off uint64, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(m.base, off)), n)
}

// object is view for n at most maxSmall, which it does not check.
func (m *memory) object(obj uint32, n int) []byte {
	return (*[maxSmall]byte)(unsafe.Add(m.base, uint64(obj)<<objShift))[:n:n]
}

// run is view for n at most the longest run that a cache serves.
func (m *memory) run(off uint64, n int) []byte {
	return (*[cachedRun * unitSize]byte)(unsafe.Add(m.base, off))[:n:n]
}

// blocks gives n blocks from block first on.
func (m *memory) blocks(first, n uint32) []byte {
	return m.view(uint64(first)<<blockShift, int(n)<<blockShift)
}
