//go:build linux

package uverbs

import (
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/mr"
)

// wqeSize is the size of a C work request, which POST_SEND asks for; the kernel
// wants at least that of struct ib_uverbs_send_wr (56 bytes), and the rxe and siw
// drivers look at nothing else in the request.
const wqeSize = 128

// Doorbell tells a software driver (rxe, siw) to look at a send queue. It keeps
// its request ready, so that ringing does not allocate. One goroutine at a time
// may use it.
//
// It is the one request made with write(2), in the form that libibverbs uses
// (ib_uverbs_cmd_hdr of rdma/ib_user_verbs.h): the kernel then does not look up and
// copy attributes, which costs about as much as ringing itself. Where it refuses
// that, for a thread with other credentials than the opener's or when only the
// ioctl is answered, the ioctl does the same.
type Doorbell struct {
	r       *request
	h       QPHandle
	command []byte // in the request's page; nil: by ioctl
}

// NewDoorbell prepares the doorbell of a queue pair. It must be closed.
func (c *Context) NewDoorbell(h QPHandle) (*Doorbell, error) {
	r, err := c.begin(mPostSend, postSendSize+postSendRespSize+writeHdrSize+postSendSize)
	if err != nil {
		return nil, err
	}
	in := r.in(attrCoreIn, postSendSize)
	postSendQPHandle.Put(in, uint32(h))
	postSendWqeSize.Put(in, wqeSize)
	resp := r.out(attrCoreOut, postSendRespSize)
	d := &Doorbell{r: r, h: h}
	if c.sys.Ioctl == nil {
		d.command = r.room(writeHdrSize + postSendSize)
		writeHdrCommand.Put(d.command, uint32(cmdPostSend))
		writeHdrInWords.Put(d.command, uint16(len(d.command)/4))
		writeHdrOutWords.Put(d.command, uint16(postSendRespSize/4))
		copy(d.command[writeHdrSize:], in)
		postSendResponse.Put(d.command[writeHdrSize:], mr.Addr(resp))
	}
	return d, nil
}

// Ring makes the driver take what was put into the send queue.
func (d *Doorbell) Ring() error {
	if d.command != nil && d.r.b != nil {
		if d.r.c.writeCommand(d.command) == 0 {
			return nil
		}
		d.command = nil // the ioctl says what is wrong, if anything is
	}
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
