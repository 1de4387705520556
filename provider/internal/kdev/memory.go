//go:build linux

package kdev

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Reregister changes a region of this domain.
func (d *PD) Reregister(r mr.Region, buf []byte, access mr.Access) (mr.Region, error) {
	const op = "change memory region"
	change := uverbs.Rereg{Rights: true, Access: access}
	next := r
	err := access.Check()
	if buf != nil {
		err = d.ctx.Limits.CheckMR(buf, access)
		next.Addr, next.Length = mr.Addr(buf), uint64(len(buf))
		change.Memory, change.Addr, change.Length = true, next.Addr, next.Length
	}
	if err != nil {
		return mr.Region{}, d.ctx.Fail(op, r.String(), err, "")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h := uverbs.MRHandle(r.Handle)
	if have, ok := d.regions[h]; !ok || have != r {
		return mr.Region{}, d.ctx.Fail(op, r.String(), verbs.ErrClosed, notHere)
	}
	if next.LKey, next.RKey, err = d.ctx.K.ReregMR(h, d.h, change); err != nil {
		return mr.Region{}, err
	}
	d.regions[h] = next
	return next, nil
}

// RegisterDMABuf registers a range of a dmabuf.
func (d *PD) RegisterDMABuf(buf verbs.DMABuf, access mr.Access) (mr.Region, error) {
	const op = "register dmabuf memory region"
	if err := d.ctx.Limits.CheckDMABuf(buf, access); err != nil {
		return mr.Region{}, d.ctx.Fail(op, "", err, "")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return mr.Region{}, d.ctx.Fail(op, "", verbs.ErrClosed, "")
	}
	h, lkey, rkey, err := d.ctx.K.RegDMABufMR(d.h, buf.FD, buf.Offset, buf.Length, buf.Addr, access)
	if err != nil {
		return mr.Region{}, err
	}
	r := mr.Region{Addr: buf.Addr, Length: buf.Length, LKey: lkey, RKey: rkey, Handle: uint64(h)}
	d.regions[h] = r
	return r, nil
}

// Advise tells the kernel how ranges of regions will be used.
func (d *PD) Advise(advice mr.Advice, wait bool, ranges []qp.SGE) error {
	if d.isClosed() {
		return d.ctx.Fail("advise on memory region", "", verbs.ErrClosed, "")
	}
	err := d.ctx.K.AdviseMR(d.h, advice, wait, ranges)
	if errors.Is(err, syscall.EINVAL) && !d.ctx.Limits.OnDemand.Supported {
		none := &verbs.UnsupportedError{Feature: "on-demand paging", Missing: "the device"}
		return d.ctx.Fail("advise on memory region", "", fmt.Errorf("%w (%w)", none, syscall.EINVAL), "use regions without it")
	}
	return err
}

func (d *PD) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}
