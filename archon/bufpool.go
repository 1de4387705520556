package archon

import (
	"math/bits"
	"sync"
)

// bufPool keeps the buffers of TCP sockets by size class: four classes a doubling,
// so that at most a fifth of a buffer is unused. What stays unused goes to the
// garbage collector in time.
type bufPool struct {
	classes [maxClasses]sync.Pool // of *byte, the first of a buffer of the class's size
}

const (
	minClassShift = 8  // the smallest class has 256 bytes
	maxClasses    = 96 // up to 4 GiB
)

var buffers bufPool

// classOf gives the smallest class whose buffers hold n bytes.
func classOf(n int) int {
	if n <= 1<<minClassShift {
		return 0
	}
	// n-1 lies in [4, 8) << shift.
	shift := bits.Len(uint(n-1)) - 3
	return 4*(shift-(minClassShift-2)) + (n-1)>>shift - 3
}

// classSize gives the bytes of a class's buffers.
func classSize(class int) int {
	return (4 + class&3) << (minClassShift - 2 + class>>2)
}

// get gives a buffer of n bytes with any contents.
func (p *bufPool) get(n int) []byte {
	class := classOf(n)
	if v := p.classes[class].Get(); v != nil {
		return bytesAt(v.(*byte), classSize(class))[:n]
	}
	return make([]byte, n, classSize(class))
}

// put takes back a buffer of get. Others, which the capacity tells, are left to the
// garbage collector.
func (p *bufPool) put(b []byte) {
	n := cap(b)
	if n < 1<<minClassShift {
		return
	}
	if class := classOf(n); classSize(class) == n {
		p.classes[class].Put(firstByte(b))
	}
}
