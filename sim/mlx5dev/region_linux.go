package mlx5dev

import (
	"encoding/binary"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/verbs"
)

// reregMR gives a region other rights, other memory, or both. The model's regions
// stay in the domain that they were made in.
func (f *file) reregMR(c call) syscall.Errno {
	in, out := c.in("CORE_IN"), c.out("CORE_OUT")
	r := f.mrs[reregMRHandle.Get(in)]
	if r == nil {
		return unix.ENOENT
	}
	flags := reregMRFlags.Get(in)
	addr, n := reregMRStart.Get(in), reregMRLength.Get(in)
	var buf []byte
	switch {
	case flags == 0 || flags&^(reregTranslation|reregAccess) != 0:
		return unix.EINVAL
	case f.pds[reregMRPDHandle.Get(in)] != r.pd:
		return unix.EINVAL
	case flags&reregTranslation != 0:
		if n == 0 || addr == 0 || reregMRHcaVA.Get(in) != addr {
			return unix.EINVAL
		}
		buf = memory(addr, int(n))
	}
	access := r.access
	if flags&reregAccess != 0 {
		access = mr.Access(reregMRAccessFlags.Get(in))
	}
	m, err := verbs.MemoryOf(r.pd.core)
	if err != nil {
		return errnoOf(err)
	}
	next, err := m.Reregister(r.core, buf, access)
	if err != nil {
		return errnoOf(err)
	}
	r.core, r.access = next, access
	reregMRRespLkey.Put(out, uint32(next.LKey))
	reregMRRespRkey.Put(out, uint32(next.RKey))
	return 0
}

// regDMABufMR answers as a driver without on-demand paging, which it takes to follow
// an exporter that moves the memory.
func (f *file) regDMABufMR(c call) syscall.Errno {
	offset, n := binary.NativeEndian.Uint64(c.in("OFFSET")), binary.NativeEndian.Uint64(c.in("LENGTH"))
	iova := binary.NativeEndian.Uint64(c.in("IOVA"))
	switch {
	case f.pds[uint32(c.value("PD_HANDLE"))] == nil:
		return unix.ENOENT
	case n == 0 || offset+n < offset || (offset^iova)%uarPageSize != 0:
		return unix.EINVAL
	}
	return unix.EOPNOTSUPP
}

// adviseMR answers as a driver whose regions are all pinned.
func (f *file) adviseMR(c call) syscall.Errno {
	const sge = 16
	if f.pds[uint32(c.value("PD_HANDLE"))] == nil {
		return unix.ENOENT
	}
	list := c.in("SGE_LIST")
	if len(list) == 0 || len(list)%sge != 0 || c.value("ADVICE") > uint64(mr.PrefetchNoFault) || c.value("FLAGS") > 1 {
		return unix.EINVAL
	}
	for g := range slices.Chunk(list, sge) {
		known := false
		for _, r := range f.mrs {
			known = known || uint32(r.core.LKey) == get32(g[12:])
		}
		if !known {
			return unix.ENOENT
		}
	}
	return unix.EINVAL
}
