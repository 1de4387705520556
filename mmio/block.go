package mmio

import "fmt"

// BlockSize is the size in bytes of what DoorbellBlocks stores at a time.
const BlockSize = 64

// DoorbellBlocks is [Doorbell] with src, of a positive multiple of 64 bytes, in v's
// place: it is stored to write-combining device memory at dst in ascending order,
// with stores of at least 8 bytes, so that it can reach the device as few writes
// (BlueFlame). It panics if src has another length.
func DoorbellBlocks(record *uint32, count uint32, dst *uint64, src []byte) {
	if len(src) == 0 || len(src)%BlockSize != 0 {
		notBlocks(len(src))
	}
	doorbellBlocks(record, count, dst, &src[0], len(src)/BlockSize)
}

func notBlocks(n int) { panic(fmt.Sprintf("mmio: %d bytes are not blocks", n)) }
