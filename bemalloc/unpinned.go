//go:build race || bemalloc_nolinkname || go1.27

package bemalloc

// havePin tells that caches per P are not compiled in: the race detector does
// not know that a P excludes others, linkname is not wanted, or this Go is newer than
// those whose runtime pinned_unsafe.go was written for.
const havePin = false

func procPin() int { return 0 }
func procUnpin()   {}
func gracePeriod() {}
