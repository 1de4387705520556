//go:build linux

package uverbs

import (
	"encoding/binary"
	"fmt"

	"github.com/byteexpress/byteexpress/qp"
)

// SRQConfig asks for a shared receive queue.
type SRQConfig struct {
	PD         PDHandle
	Caps       qp.SRQCaps
	UserHandle uint64 // comes back in events; never a pointer
}

// String says what was asked for, for errors.
func (a *SRQConfig) String() string { return fmt.Sprintf("with %+v", a.Caps) }

// CreateSRQ makes a shared receive queue. The capacities are what the kernel says
// it gave.
func (c *Context) CreateSRQ(a *SRQConfig, uhw *UHW) (h SRQHandle, caps qp.SRQCaps, err error) {
	err = c.withFallback(mSRQCreate,
		func() (err error) { h, caps, err = c.createSRQ(a, uhw); return err },
		func() (err error) { h, caps, err = c.createSRQByWrite(a, uhw); return err })
	return h, caps, err
}

func (c *Context) createSRQ(a *SRQConfig, uhw *UHW) (SRQHandle, qp.SRQCaps, error) {
	r, err := c.begin(mSRQCreate, 2*8+uhw.room())
	if err != nil {
		return 0, qp.SRQCaps{}, err
	}
	defer r.release()
	handle := r.result(attrSRQHandle, kindNewHandle)
	r.handle(attrSRQPDHandle, uint32(a.PD))
	binary.NativeEndian.PutUint64(r.in(attrSRQUserHandle, 8), a.UserHandle)
	binary.NativeEndian.PutUint32(r.in(attrSRQMaxWR, 4), uint32(a.Caps.RecvWR))
	binary.NativeEndian.PutUint32(r.in(attrSRQMaxSGE, 4), uint32(a.Caps.RecvSGE))
	r.in(attrSRQLimit, 4)
	r.constant(attrSRQType, srqTypeBasic)
	r.fd(attrSRQEventFD, c.asyncFD)
	wr, sge := r.out(attrSRQRespMaxWR, 4), r.out(attrSRQRespMaxSGE, 4)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, qp.SRQCaps{}, c.fail(r.m, a.String(), errno)
	}
	uhw.reply(reply)
	return SRQHandle(attrData.Get(handle)), qp.SRQCaps{RecvWR: int(u32(wr)), RecvSGE: int(u32(sge))}, nil
}

func (c *Context) createSRQByWrite(a *SRQConfig, uhw *UHW) (SRQHandle, qp.SRQCaps, error) {
	r, err := c.begin(wCreateSRQ, createSRQSize+createSRQRespSize+uhw.room())
	if err != nil {
		return 0, qp.SRQCaps{}, err
	}
	defer r.release()
	in := r.in(attrCoreIn, createSRQSize)
	createSRQUserHandle.Put(in, a.UserHandle)
	createSRQPDHandle.Put(in, uint32(a.PD))
	createSRQMaxWR.Put(in, uint32(a.Caps.RecvWR))
	createSRQMaxSGE.Put(in, uint32(a.Caps.RecvSGE))
	out := r.out(attrCoreOut, createSRQRespSize)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, qp.SRQCaps{}, c.fail(r.m, a.String(), errno)
	}
	uhw.reply(reply)
	caps := qp.SRQCaps{RecvWR: int(createSRQRespMaxWR.Get(out)), RecvSGE: int(createSRQRespMaxSGE.Get(out))}
	return SRQHandle(createSRQRespSRQHandle.Get(out)), caps, nil
}

// DestroySRQ destroys a shared receive queue; EBUSY while a queue pair uses it.
func (c *Context) DestroySRQ(h SRQHandle) (n Reported, err error) {
	err = c.destroyReported(mSRQDestroy, wDestroySRQ, destroySRQSRQHandle, uint32(h), func(out []byte) {
		n.Async = destroySRQRespEventsReported.Get(out)
	})
	return n, err
}

// ArmSRQ sets the limit below which the kernel reports one event; 0: none.
func (c *Context) ArmSRQ(h SRQHandle, limit int, uhw *UHW) error {
	r, err := c.begin(mModifySRQ, modifySRQSize+uhw.room())
	if err != nil {
		return err
	}
	defer r.release()
	in := r.in(attrCoreIn, modifySRQSize)
	modifySRQSRQHandle.Put(in, uint32(h))
	modifySRQAttrMask.Put(in, srqMaskLimit)
	modifySRQLimit.Put(in, uint32(limit))
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return c.fail(r.m, fmt.Sprintf("with limit %d", limit), errno)
	}
	uhw.reply(reply)
	return nil
}

// QuerySRQ asks for a shared receive queue's capacities and limit.
func (c *Context) QuerySRQ(h SRQHandle) (qp.SRQAttr, error) {
	r, err := c.begin(mQuerySRQ, querySRQSize+querySRQRespSize)
	if err != nil {
		return qp.SRQAttr{}, err
	}
	defer r.release()
	querySRQSRQHandle.Put(r.in(attrCoreIn, querySRQSize), uint32(h))
	b := r.out(attrCoreOut, querySRQRespSize)
	if errno := r.do(); errno != 0 {
		return qp.SRQAttr{}, c.fail(r.m, fmt.Sprintf("handle %d", h), errno)
	}
	return qp.SRQAttr{
		Caps:  qp.SRQCaps{RecvWR: int(querySRQRespMaxWR.Get(b)), RecvSGE: int(querySRQRespMaxSGE.Get(b))},
		Limit: int(querySRQRespLimit.Get(b)),
	}, nil
}
