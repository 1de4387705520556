//go:build amd64 || arm64

package prefetch

// lines gets the n bytes at p, by lines of 64. Addresses that are not mapped do no harm.
func lines(p, n uintptr)
