package mlx5

import (
	"encoding/binary"
	"sync"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
)

// Observer is told what a NIC sees by itself on its bus. It is for device models;
// on hardware there is none. Its methods are called by the goroutine that did the
// store, right after it.
type Observer interface {
	// Rung says that n bytes were stored at an offset of the UAR page that was
	// mapped from that offset of the device's file.
	Rung(page int64, off, n int)
	// Received says that the doorbell record at this address has a new number of
	// receives.
	Received(record uint64)
}

// A UAR is 4096 bytes of registers: the one for completion queues near its start,
// those for queue pairs from here on.
const (
	uarSize        = 4096
	firstRegister  = 0x800
	registersInUAR = 4 // two of them for queue pairs, two the kernel keeps to itself
)

// register is a doorbell register of a UAR: two buffers that are used in turn, of
// which the first 8 bytes are the doorbell. Where there is no BlueFlame it is one
// doorbell. Offsets count from the start of the page.
type register struct {
	page   *uarPage
	off    int
	size   int // bytes of one of the two buffers; 0: one plain doorbell
	mode   BlueFlame
	shared bool       // several queue pairs may ring it
	mu     sync.Mutex // held if shared
	buffer int        // 0 or size: the buffer to use
	words  [2]*uint64 // the doorbells of the buffers
}

// newRegister gives the register at an offset of a page.
func newRegister(page *uarPage, off, size int) *register {
	return &register{page: page, off: off, size: size, words: [2]*uint64{page.m.Uint64(off), page.m.Uint64(off + size)}}
}

// ringShared is ring for a register that several queue pairs may ring.
func (r *register) ringShared(s *sendQueue, alone bool, last, units uint32, w *qp.SendWR) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring(s, alone, last, units, w)
}

// ring makes the NIC look at what was put into s. The last request, w, begins at a
// block and has a length in 16-byte units; alone: it is the only one. It does not lock.
func (r *register) ring(s *sendQueue, alone bool, last, units uint32, w *qp.SendWR) {
	at, from, to := r.off+r.buffer, int(last&s.mask)<<blockShift, r.words[0]
	if r.buffer != 0 {
		to = r.words[1]
	}
	r.buffer ^= r.size
	posted := mmio.BE32(s.blocks & 0xffff)
	length := 8
	if !alone || !r.copies(units, w) {
		mmio.Doorbell(s.record, posted, to, binary.NativeEndian.Uint64(s.b[from:]))
	} else {
		length = roundUp(int(units)*16, blockSize)
		first := min(length, len(s.b)-from)
		mmio.DoorbellBlocks(s.record, posted, to, s.b[from:from+first])
		if first < length { // on from the ring's start
			mmio.DoorbellBlocks(s.record, posted, r.page.m.Uint64(at+first), s.b[:length-first])
		}
	}
	if o := r.page.observer; o != nil {
		o.Rung(r.page.offset, at, length)
	}
}

// copies reports whether a request is copied to the register as a whole. One of 16
// bytes is its own doorbell.
func (r *register) copies(units uint32, w *qp.SendWR) bool {
	return units > 1 && int(units)*16 <= r.size && (r.mode == BlueFlameAlways || r.mode == BlueFlameInline && inline(w))
}

// inline reports whether a request has inline payload, be it empty.
func inline(w *qp.SendWR) bool { return w.Flags&qp.Inline != 0 && w.Inline != nil }

// uarPage is a mapped page of doorbell registers.
type uarPage struct {
	m        *mmio.Mapping
	offset   int64  // in the device's file
	id       uint32 // names it when queues are created
	observer Observer
	mu       sync.Mutex // one arm at a time
}

// arm stores to a doorbell record's word, then to the page's register for completion
// queues.
func (p *uarPage) arm(record *uint32, word uint32, v uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mmio.Doorbell(record, mmio.BE32(word), p.m.Uint64(armRegister), mmio.BE64(v))
	if p.observer != nil {
		p.observer.Rung(p.offset, armRegister, 8)
	}
}
