//go:build linux

package uverbs

import (
	"fmt"

	"github.com/byteexpress/byteexpress/internal/abi"
	"github.com/byteexpress/byteexpress/mr"
)

// AllocPD makes a protection domain.
func (c *Context) AllocPD(uhw *UHW) (PDHandle, error) {
	r, err := c.begin(mAllocPD, allocPDRespSize+8+uhw.room())
	if err != nil {
		return 0, err
	}
	defer r.release()
	r.in(attrCoreIn, allocPDSize)
	out := r.out(attrCoreOut, allocPDRespSize)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, c.fail(r.m, "", errno)
	}
	uhw.reply(reply)
	return PDHandle(allocPDRespPDHandle.Get(out)), nil
}

// DeallocPD gives a protection domain back; EBUSY while anything is in it.
func (c *Context) DeallocPD(h PDHandle) error {
	return c.destroy(mPDDestroy, attrPDHandle, uint32(h))
}

// DeregMR ends a memory region.
func (c *Context) DeregMR(h MRHandle) error {
	return c.destroy(mMRDestroy, attrMRHandle, uint32(h))
}

// destroy makes a destroy request that has no answer.
func (c *Context) destroy(m *method, attr uint16, h uint32) error {
	r, err := c.begin(m, 0)
	if err != nil {
		return err
	}
	defer r.release()
	r.handle(attr, h)
	if errno := r.do(); errno != 0 {
		return c.fail(m, fmt.Sprintf("handle %d", h), errno)
	}
	return nil
}

// destroyReported makes a destroy request whose answer, which read is given, tells how
// many events the object had: by the native method m, whose attributes are the handle
// and the answer, or by the older command, whose struct has the handle at field.
func (c *Context) destroyReported(m, older *method, field abi.U32, h uint32, read func(out []byte)) error {
	size := older.attr(attrCoreIn).size
	by := func(m *method, name func(r *request), answer *attrSpec) error {
		r, err := c.begin(m, size+answer.size)
		if err != nil {
			return err
		}
		defer r.release()
		name(r)
		out := r.out(answer.id, answer.size)
		if errno := r.do(); errno != 0 {
			return c.fail(m, fmt.Sprintf("handle %d", h), errno)
		}
		read(out)
		return nil
	}
	return c.withFallback(m, func() error {
		return by(m, func(r *request) { r.handle(m.attrs[0].id, h) }, &m.attrs[1])
	}, func() error {
		return by(older, func(r *request) { field.Put(r.in(attrCoreIn, size), h) }, older.attr(attrCoreOut))
	})
}

// RegMR registers memory from mmap, addressed by the peer as it is here. On
// kernels that do not tolerate them, the optional access flags are left out.
func (c *Context) RegMR(pd PDHandle, addr, length uint64, access mr.Access, uhw *UHW) (MRHandle, mr.LKey, mr.RKey, error) {
	r, err := c.begin(mRegMR, regMRSize+regMRRespSize+8+uhw.room())
	if err != nil {
		return 0, 0, 0, err
	}
	defer r.release()
	in := r.in(attrCoreIn, regMRSize)
	regMRStart.Put(in, addr)
	regMRLength.Put(in, length)
	regMRHcaVA.Put(in, addr)
	regMRPDHandle.Put(in, uint32(pd))
	regMRAccessFlags.Put(in, uint32(c.access(access)))
	out := r.out(attrCoreOut, regMRRespSize)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, 0, 0, c.fail(r.m, fmt.Sprintf("of %d bytes at %#x, %v", length, addr, access), errno)
	}
	uhw.reply(reply)
	return MRHandle(regMRRespMRHandle.Get(out)), mr.LKey(regMRRespLkey.Get(out)), mr.RKey(regMRRespRkey.Get(out)), nil
}
