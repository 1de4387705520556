//go:build linux

package uverbs

import (
	"encoding/binary"
	"fmt"
)

// CQConfig asks for a completion queue.
type CQConfig struct {
	Entries    int
	Vector     int
	Channel    *CompChannel // nil: no events
	UserHandle uint64       // comes back in events; never a pointer
}

// String says what was asked for, for errors.
func (a *CQConfig) String() string {
	return fmt.Sprintf("of %d entries on vector %d", a.Entries, a.Vector)
}

// Reported tells how many events the kernel handed out for an object in its life.
// Before its user handle is forgotten, as many must have been processed.
type Reported struct {
	Completion, Async uint32
}

// CreateCQ makes a completion queue and says how many entries it got.
func (c *Context) CreateCQ(a *CQConfig, uhw *UHW) (h CQHandle, entries int, err error) {
	err = c.withFallback(mCQCreate,
		func() (err error) { h, entries, err = c.createCQ(a, uhw); return err },
		func() (err error) { h, entries, err = c.createCQByWrite(a, uhw); return err })
	return h, entries, err
}

func (c *Context) createCQ(a *CQConfig, uhw *UHW) (CQHandle, int, error) {
	r, err := c.begin(mCQCreate, 8+uhw.room())
	if err != nil {
		return 0, 0, err
	}
	defer r.release()
	handle := r.result(attrCQHandle, kindNewHandle)
	binary.NativeEndian.PutUint32(r.in(attrCQCQE, 4), uint32(a.Entries))
	binary.NativeEndian.PutUint64(r.in(attrCQUserHandle, 8), a.UserHandle)
	binary.NativeEndian.PutUint32(r.in(attrCQCompVector, 4), uint32(a.Vector))
	if a.Channel != nil {
		r.fd(attrCQCompChannel, a.Channel.fd)
	}
	r.fd(attrCQEventFD, c.asyncFD)
	cqe := r.out(attrCQRespCQE, 4)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, 0, c.fail(r.m, a.String(), errno)
	}
	uhw.reply(reply)
	return CQHandle(attrData.Get(handle)), int(u32(cqe)), nil
}

func (c *Context) createCQByWrite(a *CQConfig, uhw *UHW) (CQHandle, int, error) {
	r, err := c.begin(wCreateCQ, createCQSize+createCQRespSize+uhw.room())
	if err != nil {
		return 0, 0, err
	}
	defer r.release()
	in := r.in(attrCoreIn, createCQSize)
	createCQUserHandle.Put(in, a.UserHandle)
	createCQCQE.Put(in, uint32(a.Entries))
	createCQCompVector.Put(in, uint32(a.Vector))
	channel := int32(-1)
	if a.Channel != nil {
		channel = int32(a.Channel.fd)
	}
	createCQCompChannel.Put(in, uint32(channel))
	out := r.out(attrCoreOut, createCQRespSize)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, 0, c.fail(r.m, a.String(), errno)
	}
	uhw.reply(reply)
	return CQHandle(createCQRespCQHandle.Get(out)), int(createCQRespCQE.Get(out)), nil
}

// DestroyCQ destroys a completion queue; EBUSY while a queue pair uses it.
func (c *Context) DestroyCQ(h CQHandle) (n Reported, err error) {
	err = c.destroyReported(mCQDestroy, wDestroyCQ, destroyCQCQHandle, uint32(h), func(out []byte) {
		n = Reported{destroyCQRespCompEventsReported.Get(out), destroyCQRespAsyncEventsReported.Get(out)}
	})
	return n, err
}

// ResizeCQ changes a completion queue's number of entries, and says how many it got.
func (c *Context) ResizeCQ(h CQHandle, entries int, uhw *UHW) (int, error) {
	r, err := c.begin(mResizeCQ, resizeCQSize+resizeCQRespSize+uhw.room())
	if err != nil {
		return 0, err
	}
	defer r.release()
	in := r.in(attrCoreIn, resizeCQSize)
	resizeCQCQHandle.Put(in, uint32(h))
	resizeCQCQE.Put(in, uint32(entries))
	out := r.out(attrCoreOut, resizeCQRespSize)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, c.fail(r.m, fmt.Sprintf("to %d entries", entries), errno)
	}
	uhw.reply(reply)
	return int(resizeCQRespCQE.Get(out)), nil
}

// Notifier arms one completion queue. It keeps its request ready, so that arming
// does not allocate. One goroutine at a time may use it.
type Notifier struct {
	r  *request
	h  CQHandle
	in []byte // nil: closed
}

// NewNotifier prepares to arm a completion queue. It must be closed.
func (c *Context) NewNotifier(h CQHandle) (*Notifier, error) {
	r, err := c.begin(mReqNotifyCQ, 0)
	if err != nil {
		return nil, err
	}
	in := r.in(attrCoreIn, reqNotifyCQSize)
	reqNotifyCQCQHandle.Put(in, uint32(h))
	return &Notifier{r, h, in}, nil
}

// Arm asks for one event at the next completion, or only at the next solicited or
// failed one.
func (n *Notifier) Arm(solicitedOnly bool) error {
	v := uint32(0)
	if solicitedOnly {
		v = 1
	}
	if n.in != nil {
		reqNotifyCQSolicitedOnly.Put(n.in, v)
	}
	if errno := n.r.do(); errno != 0 {
		return n.r.c.fail(n.r.m, fmt.Sprintf("handle %d", n.h), errno)
	}
	return nil
}

// Close gives the request's memory back; again does nothing.
func (n *Notifier) Close() {
	n.in = nil
	n.r.release()
}
