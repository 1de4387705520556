package archon

import "unsafe"

// firstByte is a pointer that stands for a buffer in a sync.Pool, where a slice
// would be boxed anew each time.
func firstByte(b []byte) *byte { return unsafe.SliceData(b) }

// bytesAt is the buffer of n bytes that p stands for.
func bytesAt(p *byte, n int) []byte { return unsafe.Slice(p, n) }
