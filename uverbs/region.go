//go:build linux

package uverbs

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// access is what the kernel is asked for: without its word that it tolerates them,
// the optional flags are left out.
func (c *Context) access(a mr.Access) mr.Access {
	if c.core&coreOptionalMRAccess == 0 {
		a &^= mr.OptionalRange
	}
	return a
}

// Rereg says what of a memory region is to change.
type Rereg struct {
	Memory       bool // the range, to Addr and Length
	Addr, Length uint64
	Rights       bool // what may be done with it, to Access
	Access       mr.Access
}

// String says what is to change, for errors.
func (r Rereg) String() string {
	var what []string
	if r.Memory {
		what = append(what, fmt.Sprintf("%d bytes at %#x", r.Length, r.Addr))
	}
	if r.Rights {
		what = append(what, r.Access.String())
	}
	return strings.Join(what, ", ")
}

// ReregMR changes a memory region of the domain; its keys may change too. After an
// error of the kernel's or the driver's, that the region is still as it was is
// certain only if the error wraps [verbs.ErrUnsupported] or EINVAL.
func (c *Context) ReregMR(h MRHandle, pd PDHandle, change Rereg) (mr.LKey, mr.RKey, error) {
	r, err := c.begin(mReregMR, reregMRSize+reregMRRespSize+8)
	if err != nil {
		return 0, 0, err
	}
	defer r.release()
	in := r.in(attrCoreIn, reregMRSize)
	reregMRHandle.Put(in, uint32(h))
	reregMRPDHandle.Put(in, uint32(pd))
	flags := uint32(0)
	if change.Memory {
		flags |= reregTranslation
		reregMRStart.Put(in, change.Addr)
		reregMRLength.Put(in, change.Length)
		reregMRHcaVA.Put(in, change.Addr)
	}
	if change.Rights {
		flags |= reregAccess
		reregMRAccessFlags.Put(in, uint32(c.access(change.Access)))
	}
	reregMRFlags.Put(in, flags)
	out := r.out(attrCoreOut, reregMRRespSize)
	if errno := r.do(); errno != 0 {
		return 0, 0, c.fail(r.m, fmt.Sprintf("%d to %v", h, change), errno)
	}
	return mr.LKey(reregMRRespLkey.Get(out)), mr.RKey(reregMRRespRkey.Get(out)), nil
}

// RegDMABufMR registers length bytes from offset on of the dmabuf that fd names,
// which peers and this host's work requests address from iova on. offset and iova
// must lie at the same place in their pages. The descriptor may be closed after.
func (c *Context) RegDMABufMR(pd PDHandle, fd int, offset, length, iova uint64, access mr.Access) (MRHandle, mr.LKey, mr.RKey, error) {
	r, err := c.begin(mRegDMABufMR, 16)
	if err != nil {
		return 0, 0, 0, err
	}
	defer r.release()
	handle := r.result(attrDMABufHandle, kindNewHandle)
	lkey, rkey := r.out(attrDMABufRespLkey, 4), r.out(attrDMABufRespRkey, 4)
	r.handle(attrDMABufPD, uint32(pd))
	binary.NativeEndian.PutUint64(r.in(attrDMABufOffset, 8), offset)
	binary.NativeEndian.PutUint64(r.in(attrDMABufLength, 8), length)
	binary.NativeEndian.PutUint64(r.in(attrDMABufIOVA, 8), iova)
	binary.NativeEndian.PutUint32(r.in(attrDMABufFD, 4), uint32(int32(fd)))
	r.flags(attrDMABufAccess, uint32(c.access(access)))
	if errno := r.do(); errno != 0 {
		return 0, 0, 0, c.fail(r.m, fmt.Sprintf("of %d bytes at %#x of descriptor %d, %v", length, offset, fd, access), errno)
	}
	return MRHandle(attrData.Get(handle)), mr.LKey(u32(lkey)), mr.RKey(u32(rkey)), nil
}

// maxRanges is how many ranges fit the 16-bit length of an attribute.
const maxRanges = 0xffff / sgeSize

// AdviseMR tells the kernel how ranges of memory regions with on-demand paging will
// be used. wait: it returns when that is done.
func (c *Context) AdviseMR(pd PDHandle, advice mr.Advice, wait bool, ranges []qp.SGE) error {
	if n := len(ranges); n < 1 || n > maxRanges {
		return c.fail(mAdviseMR, "", fmt.Errorf("%w: %d ranges, must be 1 to %d", verbs.ErrLimit, n, maxRanges))
	}
	r, err := c.begin(mAdviseMR, len(ranges)*sgeSize)
	if err != nil {
		return err
	}
	defer r.release()
	r.handle(attrAdvisePD, uint32(pd))
	r.constant(attrAdviseAdvice, uint64(advice))
	flags := uint32(0)
	if wait {
		flags = adviseFlush
	}
	r.flags(attrAdviseFlags, flags)
	b := r.in(attrAdviseSGEs, len(ranges)*sgeSize)
	for i, s := range ranges {
		g := b[i*sgeSize:]
		sgeAddr.Put(g, s.Addr)
		sgeLength.Put(g, s.Length)
		sgeLkey.Put(g, uint32(s.LKey))
	}
	if errno := r.do(); errno != 0 {
		return c.fail(r.m, fmt.Sprintf("%v of %d ranges", advice, len(ranges)), errno)
	}
	return nil
}
