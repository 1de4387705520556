//go:build linux

package mlx5

import (
	"fmt"
	"os"
	"sync"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/uverbs"
)

// maxUARs bounds the pages of registers that a context asks for. With two queue
// pairs on each, more queue pairs than that share one register.
const maxUARs = 256

// uars are the doorbell registers of a context: pages that the kernel gave all at
// once when it was opened, or that are asked for one by one (dynamic).
type uars struct {
	c       *devContext
	dynamic bool
	cq      *uarPage // to arm completion queues

	mu      sync.Mutex
	pages   []*uarPage
	objects []uverbs.MLX5UARHandle // dynamic: those of pages
	free    []*register            // dynamic: not shared, of no queue pair
	common  *register              // dynamic: the one that queue pairs share
	given   map[uint32]*register   // not dynamic: by index
}

func (u *uars) open() error {
	a := &u.c.answer
	u.dynamic = a.bfRegs == 0
	if u.dynamic {
		page, err := u.alloc(false)
		if err != nil {
			return err
		}
		u.cq = page
		u.common = newRegister(page, firstRegister, 0)
		u.common.shared = true
		return nil
	}
	u.given = map[uint32]*register{}
	for i := range max(a.bfRegs/(contextRespBFRegsPerUAR*a.uarsPerPage), 1) {
		offset := int64(contextMmapRegularPage<<8|i&0xff|i>>8<<16) * int64(os.Getpagesize())
		if _, err := u.mapPage(offset, os.Getpagesize()); err != nil {
			return err
		}
	}
	u.cq = u.pages[0]
	return nil
}

func (u *uars) mapPage(offset int64, length int) (*uarPage, error) {
	m, err := mmio.MapRegister(u.c.K.FD(), offset, length)
	if err != nil {
		return nil, u.c.Fail("map doorbell registers", fmt.Sprintf("at %#x", offset), err, "the process may be out of address space or mappings (vm.max_map_count)")
	}
	p := &uarPage{m: m, offset: offset, observer: u.c.observer}
	u.pages = append(u.pages, p)
	return p, nil
}

// alloc asks for a page.
func (u *uars) alloc(blueFlame bool) (*uarPage, error) {
	o, err := u.c.K.AllocMLX5UAR(blueFlame)
	if err != nil {
		return nil, err
	}
	if o.Length < uarSize || !blueFlame && o.PageID > 0xffff {
		u.c.K.DestroyMLX5UAR(o.Handle)
		return nil, u.c.Fail("allocate UAR", "", fmt.Errorf("page %d of %d bytes", o.PageID, o.Length), otherDriver)
	}
	p, err := u.mapPage(o.Offset, o.Length)
	if err != nil {
		u.c.K.DestroyMLX5UAR(o.Handle)
		return nil, err
	}
	p.id = o.PageID
	u.objects = append(u.objects, o.Handle)
	return p, nil
}

// take gives a register for a new queue pair, of its own if there is one; nil if
// the driver chooses. Preconditions: give is called for it, once.
func (u *uars) take() *register {
	if !u.dynamic {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.free) == 0 && len(u.pages) < maxUARs {
		p, err := u.alloc(true)
		if err != nil {
			return u.common // slower, and enough
		}
		for i := range contextRespBFRegsPerUAR {
			r := newRegister(p, firstRegister+i*u.c.answer.bfRegSize, u.c.answer.bfRegSize/2)
			r.mode = u.c.settings.BlueFlame
			u.free = append(u.free, r)
		}
	}
	n := len(u.free) - 1
	if n < 0 {
		return u.common
	}
	r := u.free[n]
	u.free = u.free[:n]
	return r
}

// give takes a register back.
func (u *uars) give(r *register) {
	if r == nil || r.shared {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.free = append(u.free, r)
}

// chosen gives the register that the driver chose for a queue pair. Several may
// get the same. Number 0 has no BlueFlame.
func (u *uars) chosen(index uint32) (*register, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r := u.given[index]; r != nil {
		return r, nil
	}
	a := &u.c.answer
	uar, i := int(index/registersInUAR), int(index%registersInUAR)
	page := uar / a.uarsPerPage
	off := uar%a.uarsPerPage*uarSize + firstRegister + i*a.bfRegSize
	if page >= len(u.pages) || off+a.bfRegSize > len(u.pages[page].m.Bytes()) {
		return nil, u.c.Fail("create queue pair", "", fmt.Errorf("the driver chose doorbell register %d, beyond those of this context", index), otherDriver)
	}
	size := a.bfRegSize / 2
	if index == 0 {
		size = 0
	}
	r := newRegister(u.pages[page], off, size)
	r.mode, r.shared = u.c.settings.BlueFlame, true
	u.given[index] = r
	return r, nil
}

func (u *uars) close() {
	for _, p := range u.pages {
		p.m.Close()
	}
	for _, h := range u.objects {
		u.c.K.DestroyMLX5UAR(h) // closing the context destroys it otherwise
	}
}
