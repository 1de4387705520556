//go:build race || bemalloc_nolinkname

package bemalloc

// havePin tells that caches per P are not compiled in: the race detector does
// not know that a P excludes others, or linkname is not wanted.
const havePin = false

func procPin() int { return 0 }
func procUnpin()   {}
func gracePeriod() {}
