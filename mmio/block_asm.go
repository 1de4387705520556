//go:build amd64 || arm64

package mmio

//go:noescape
func storeBlock(dst *uint64, src *byte)
