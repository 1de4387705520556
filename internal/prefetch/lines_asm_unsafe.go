//go:build amd64 || arm64

package prefetch

import "unsafe"

// lines gets the n bytes at p, by lines of 64. Addresses that are not mapped do no harm.
//
//go:noescape
func lines(p unsafe.Pointer, n uintptr)
