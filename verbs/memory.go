package verbs

import (
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// Memory is what a protection domain can do with memory beyond registering it.
// MemoryOf gives it. What a kernel or device lacks gives an [UnsupportedError], and
// then nothing has changed. The methods may be called from any goroutine.
type Memory interface {
	// Reregister gives a region new access flags, and new memory if buf is not
	// nil, without the cost of another object. The old value of the region is void
	// then, as its keys may have changed: no posted request may use it. After an
	// error the region is still to be deregistered by its old value; unless the
	// error wraps ErrUnsupported or ErrLimit, peers may find its keys refused. buf
	// is as for Register.
	Reregister(r mr.Region, buf []byte, access mr.Access) (mr.Region, error)
	// RegisterDMABuf registers memory of another device, or of udmabuf.
	RegisterDMABuf(buf DMABuf, access mr.Access) (mr.Region, error)
	// Advise tells how ranges of on-demand regions will be used; wait: it returns
	// when the pages are there. It is a hint that may be left out.
	Advise(advice mr.Advice, wait bool, ranges []qp.SGE) error
	// AllocWindow makes a memory window of type 2 (qp.BindMW).
	AllocWindow() (mr.Window, error)
	// FreeWindow frees a window, bound or not. It comes before the close of the
	// queue pair that bound the window, which may fail with EBUSY otherwise.
	FreeWindow(mr.Window) error
}

// DMABuf is a range of a dmabuf. Offset and Addr lie at the same place in their
// pages.
type DMABuf struct {
	FD     int    // of the dmabuf; may be closed once it is registered
	Offset uint64 // in the dmabuf
	Length uint64
	Addr   uint64 // by which requests and peers address the range's first byte
}

// MemoryOf gives what the domain can do with memory, or an [UnsupportedError] if
// that is nothing beyond registering.
func MemoryOf(pd PD) (Memory, error) {
	if m, ok := pd.(Memory); ok {
		return m, nil
	}
	return nil, &UnsupportedError{Feature: "memory windows and changes of regions", Missing: "this device"}
}
