//go:build linux

package uverbs

import (
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
)

// A command page holds one request: header, attributes, then the payload that
// attributes point to. All of it is memory from mmap.
const (
	pageSize    = 4096
	maxAttrs    = 16
	payloadBase = hdrSize + maxAttrs*attrSize
)

// pages is the pool of command pages of one context.
type pages struct {
	mu     sync.Mutex
	free   []*mmio.Mapping
	closed bool
}

func (p *pages) get() (*mmio.Mapping, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		m := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return m, nil
	}
	p.mu.Unlock()
	return mmio.Anonymous(pageSize)
}

func (p *pages) put(m *mmio.Mapping) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(m.Bytes()) != pageSize {
		m.Close()
		return
	}
	p.free = append(p.free, m)
}

func (p *pages) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.free {
		m.Close()
	}
	p.free, p.closed = nil, true
}

// request builds and makes one request of the table. Misuse of the table is a bug
// of this package and panics. Payload slices are valid until release.
type request struct {
	c    *Context
	m    *method
	page *mmio.Mapping
	b    []byte
	n    int // attributes so far
	free int // first unused payload byte
}

// begin starts a request that needs up to payload bytes of payload.
func (c *Context) begin(m *method, payload int) (*request, error) {
	var page *mmio.Mapping
	var err error
	if payloadBase+payload > pageSize {
		page, err = mmio.Anonymous((payloadBase + payload + pageSize - 1) &^ (pageSize - 1))
	} else {
		page, err = c.pages.get()
	}
	if err != nil {
		return nil, c.fail(m, "", err)
	}
	r := &request{c: c, m: m, page: page, b: page.Bytes(), free: payloadBase}
	clear(r.b[:hdrSize])
	hdrObjectID.Put(r.b, m.object)
	hdrMethodID.Put(r.b, m.id)
	hdrDriverID.Put(r.b, uint32(c.driver))
	if m.object == objDevice && m.id == methInvokeWrite {
		r.constant(attrWriteCmd, uint64(m.cmd))
	}
	return r, nil
}

// release gives the command page back, once.
func (r *request) release() {
	if r.b != nil {
		r.c.pages.put(r.page)
		r.b = nil
	}
}

// add appends an attribute and returns its 16 bytes.
func (r *request) add(id uint16, length int, kinds ...attrKind) []byte {
	s := r.m.attr(id)
	if s == nil || s.kind != kinds[0] || s.size != 0 && s.size != length || r.n == maxAttrs {
		panic(fmt.Sprintf("uverbs: %s: attribute %d of %d bytes is not in the method table", r.m.op, id, length))
	}
	a := r.b[hdrSize+r.n*attrSize:][:attrSize]
	r.n++
	clear(a)
	attrAttrID.Put(a, id)
	attrLen.Put(a, uint16(length))
	if !s.soft {
		attrFlags.Put(a, flagMandatory)
	}
	return a
}

func (r *request) payload(a []byte, length int) []byte {
	p := r.room(length)
	attrData.Put(a, mr.Addr(p))
	return p
}

// room takes zeroed bytes of the page.
func (r *request) room(length int) []byte {
	p := r.b[r.free:][:length:length]
	clear(p)
	r.free += (length + 7) &^ 7
	return p
}

// in adds bytes for the kernel and returns where to write them, zeroed.
func (r *request) in(id uint16, length int) []byte {
	a := r.add(id, length, kindIn)
	if length <= 8 {
		return a[attrData:][:length:length]
	}
	return r.payload(a, length)
}

// out adds a buffer that the kernel fills, zeroed.
func (r *request) out(id uint16, length int) []byte {
	return r.payload(r.add(id, length, kindOut), length)
}

// constant adds a number.
func (r *request) constant(id uint16, v uint64) { attrData.Put(r.add(id, 8, kindConst), v) }

// flags adds a set of flags.
func (r *request) flags(id uint16, v uint32) { attrData.Put(r.add(id, 4, kindFlags), uint64(v)) }

// handle names an object.
func (r *request) handle(id uint16, h uint32) { attrData.Put(r.add(id, 0, kindHandle), uint64(h)) }

// fd names a descriptor.
func (r *request) fd(id uint16, fd int) { attrData.Put(r.add(id, 0, kindFD), uint64(int64(fd))) }

// result adds a new object or descriptor and returns the attribute: its data is
// what the kernel made.
func (r *request) result(id uint16, kind attrKind) []byte { return r.add(id, 0, kind) }

// uhw adds the driver's own bytes; the reply part is filled from the kernel's by
// uhwOut.
func (r *request) uhw(u *UHW) []byte {
	if u == nil {
		return nil
	}
	if len(u.In) > 0 {
		copy(r.in(attrUHWIn, len(u.In)), u.In)
	}
	if len(u.Out) == 0 {
		return nil
	}
	return r.out(attrUHWOut, len(u.Out))
}

// do makes the request; EBADF after release.
func (r *request) do() syscall.Errno {
	if r.b == nil {
		return unix.EBADF
	}
	n := hdrSize + r.n*attrSize
	hdrLength.Put(r.b, uint16(n))
	hdrNumAttrs.Put(r.b, uint16(r.n))
	return r.c.ioctl(r.b)
}

// UHW is what a driver adds to a request: bytes for it, and room for its reply,
// which is written to Out on success.
type UHW struct {
	In, Out []byte
}

// room is the payload space that u needs.
func (u *UHW) room() int {
	if u == nil {
		return 0
	}
	return len(u.In) + len(u.Out) + 16
}

func (u *UHW) reply(b []byte) {
	if u != nil {
		copy(u.Out, b)
	}
}
