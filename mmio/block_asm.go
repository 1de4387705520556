//go:build amd64 || arm64

package mmio

// DoorbellBlocks is [Doorbell] with the blocks of 64 bytes of src, of which there are
// len(src)/64, in v's place: they are stored to write-combining device memory at dst
// in ascending order, with stores of at least 8 bytes, so that they can reach the
// device as few writes (BlueFlame).
//
//go:noescape
func DoorbellBlocks(record *uint32, count uint32, dst *uint64, src []byte)
