//go:build amd64 || arm64

package mmio

//go:noescape
func doorbellBlocks(record *uint32, count uint32, dst *uint64, src *byte, n int)
