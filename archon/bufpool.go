package archon

import (
	"math/bits"
	"sync"
)

// bufPool keeps the buffers of TCP sockets by size class: four classes a doubling,
// so that at most a fifth of a buffer is unused. Small buffers that stay unused go to
// the garbage collector in time. Large ones cost too much to make anew, page by page:
// they are kept up to a bound.
type bufPool struct {
	small [firstLarge]sync.Pool // of *byte, the first of a buffer of the class's size

	mu    sync.Mutex
	large [maxClasses - firstLarge][][]byte
	idle  int // bytes in large
}

const (
	minClassShift = 8  // the smallest class has 256 bytes
	maxClasses    = 96 // up to 4 GiB
	firstLarge    = 28 // 32 KiB
	maxIdle       = 128 << 20
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
	if class >= firstLarge {
		if b := p.getLarge(class); b != nil {
			return b[:n]
		}
	} else if v := p.small[class].Get(); v != nil {
		return bytesAt(v.(*byte), classSize(class))[:n]
	}
	return make([]byte, n, classSize(class))
}

func (p *bufPool) getLarge(class int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	stack := &p.large[class-firstLarge]
	last := len(*stack) - 1
	if last < 0 {
		return nil
	}
	b := (*stack)[last]
	(*stack)[last] = nil
	*stack = (*stack)[:last]
	p.idle -= cap(b)
	return b
}

// put takes back a buffer of get. Others, which the capacity tells, are left to the
// garbage collector.
func (p *bufPool) put(b []byte) {
	n := cap(b)
	if n < 1<<minClassShift {
		return
	}
	class := classOf(n)
	switch {
	case classSize(class) != n:
	case class < firstLarge:
		p.small[class].Put(firstByte(b))
	default:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.idle+n <= maxIdle {
			p.idle += n
			p.large[class-firstLarge] = append(p.large[class-firstLarge], b)
		}
	}
}
