package mlx5

import (
	"encoding/binary"
	"sync"

	"github.com/byteexpress/byteexpress/mmio"
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
}

// ring rings for requests that were put into s and whose number of blocks is in
// the doorbell record's word: n of them, of which the last begins at a block and
// has a length in 16-byte units. It does not lock unless the register is shared.
func (r *register) ring(s *sendRing, record *uint32, posted uint32, n int, last uint32, units int, inline bool) {
	mmio.WriteBarrier()
	mmio.StoreBE32(record, posted&0xffff)
	if r.shared {
		r.ringShared(s, n, last, units, inline)
		return
	}
	mmio.FlushWriteCombining()
	r.store(s, n, last, units, inline)
}

func (r *register) ringShared(s *sendRing, n int, last uint32, units int, inline bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mmio.FlushWriteCombining()
	r.store(s, n, last, units, inline)
}

// store does the store to the register and pushes it out.
func (r *register) store(s *sendRing, n int, last uint32, units int, inline bool) {
	at := r.off + r.buffer
	length := 8
	if n == 1 && r.copies(units, inline) {
		length = roundUp(units*16, blockSize)
		for i := 0; i < length; i += blockSize {
			mmio.StoreBlock(r.page.m.Uint64(at+i), s.b[int(last&s.mask)<<blockShift:])
			last++
		}
	} else {
		mmio.Store64(r.page.m.Uint64(at), binary.NativeEndian.Uint64(s.b[int(last&s.mask)<<blockShift:]))
	}
	mmio.FlushWriteCombining()
	r.buffer ^= r.size
	if o := r.page.observer; o != nil {
		o.Rung(r.page.offset, at, length)
	}
}

// copies reports whether a request is copied to the register as a whole. One of 16
// bytes is its own doorbell.
func (r *register) copies(units int, inline bool) bool {
	return units > 1 && units*16 <= r.size && (r.mode == BlueFlameAlways || r.mode == BlueFlameInline && inline)
}

// uarPage is a mapped page of doorbell registers.
type uarPage struct {
	m        *mmio.Mapping
	offset   int64  // in the device's file
	id       uint32 // names it when queues are created
	observer Observer
	mu       sync.Mutex // one arm at a time
}

// arm stores to the page's register for completion queues.
func (p *uarPage) arm(v uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mmio.FlushWriteCombining()
	mmio.StoreBE64(p.m.Uint64(armRegister), v)
	mmio.FlushWriteCombining()
	if p.observer != nil {
		p.observer.Rung(p.offset, armRegister, 8)
	}
}
