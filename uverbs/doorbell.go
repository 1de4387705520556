//go:build linux

package uverbs

import (
	"fmt"
	"syscall"
)

// wqeSize is the size of a C work request, which POST_SEND asks for; the kernel
// wants at least that of struct ib_uverbs_send_wr (56 bytes), and the rxe and siw
// drivers look at nothing else in the request.
const wqeSize = 128

// Doorbell tells a software driver (rxe, siw) to look at a send queue. It keeps
// its request ready, so that ringing does not allocate. One goroutine at a time
// may use it.
type Doorbell struct {
	r *request
	h QPHandle
}

// NewDoorbell prepares the doorbell of a queue pair. It must be closed.
func (c *Context) NewDoorbell(h QPHandle) (*Doorbell, error) {
	r, err := c.begin(mPostSend, postSendSize+postSendRespSize)
	if err != nil {
		return nil, err
	}
	in := r.in(attrCoreIn, postSendSize)
	postSendQPHandle.Put(in, uint32(h))
	postSendWqeSize.Put(in, wqeSize)
	r.out(attrCoreOut, postSendRespSize)
	return &Doorbell{r, h}, nil
}

// Ring makes the driver take what was put into the send queue.
func (d *Doorbell) Ring() error {
	if errno := d.r.do(); errno != 0 {
		return d.fail(errno)
	}
	return nil
}

func (d *Doorbell) fail(errno syscall.Errno) error {
	return d.r.c.fail(d.r.m, fmt.Sprintf("handle %d", d.h), errno)
}

// Close gives the request's memory back; again does nothing.
func (d *Doorbell) Close() { d.r.release() }
