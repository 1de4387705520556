package mlx5dev

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

func (f *file) createSRQ(c call) syscall.Errno {
	const op = "create shared receive queue"
	in, out := c.in("UHW_IN"), c.out("UHW_OUT")
	if len(in) < 32 || len(out) < 8 {
		return f.refuse(op, "driver's part is missing or short")
	}
	pd := f.pds[uint32(c.value("PD_HANDLE"))]
	if pd == nil {
		return unix.ENOENT
	}
	buf, record := srqReqBuf.Get(in), srqReqRecord.Get(in)
	// The driver computes the shape from the capacities; the library must agree.
	slots, size := 1, 32
	for slots < int(get32(c.in("MAX_WR")))+1 {
		slots *= 2
	}
	for size < segment+int(get32(c.in("MAX_SGE")))*segment {
		size *= 2
	}
	switch {
	case slots > maxSharedWR || size > maxRecvDesc:
		return unix.EINVAL
	case buf%uarPageSize != 0 || buf == 0:
		return f.refuse(op, fmt.Sprintf("slots at %#x are not on a page", buf))
	case record%8 != 0 || record == 0:
		return f.refuse(op, fmt.Sprintf("doorbell record at %#x is not aligned to 8", record))
	case srqReqFlags.Get(in) != 0 || c.value("TYPE") != 0:
		return f.refuse(op, fmt.Sprintf("flags %#x, type %d", srqReqFlags.Get(in), c.value("TYPE")))
	}
	core, err := pd.core.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: slots, RecvSGE: size/segment - 1}})
	if err != nil {
		return errnoOf(err)
	}
	h := f.dev.handle()
	s := &sharedQueue{dev: f.dev, number: h & indexMask, user: c.value("USER_HANDLE"), core: core, pd: pd, addr: record, ring: memory(buf, slots*size),
		record: memory(record, 8), had: make([]bool, slots)}
	for 1<<s.shift < size {
		s.shift++
	}
	pd.used++
	f.srqs[h] = s
	d := f.dev
	d.mu.Lock()
	d.records[record] = s
	d.mu.Unlock()
	c.setValue("HANDLE", uint64(h))
	put32(c.out("RESP_MAX_WR"), uint32(slots-1))
	put32(c.out("RESP_MAX_SGE"), uint32(size/segment-1))
	srqRespNumber.Put(out, s.number)
	return 0
}

func (f *file) armSRQ(c call) syscall.Errno {
	in := c.in("CORE_IN")
	s := f.srqs[modifySRQSRQHandle.Get(in)]
	switch {
	case s == nil:
		return unix.ENOENT
	case modifySRQAttrMask.Get(in) != 2: // the limit
		return unix.EINVAL
	}
	return errnoOf(s.core.Arm(int(modifySRQLimit.Get(in))))
}

func (f *file) querySRQ(c call) syscall.Errno {
	s := f.srqs[querySRQHandle.Get(c.in("CORE_IN"))]
	if s == nil {
		return unix.ENOENT
	}
	a, err := s.core.Query()
	if err != nil {
		return errnoOf(err)
	}
	out := c.out("CORE_OUT")
	querySRQRespMaxWR.Put(out, uint32(len(s.had)-1))
	querySRQRespMaxSGE.Put(out, uint32(a.Caps.RecvSGE))
	querySRQRespLimit.Put(out, uint32(a.Limit))
	return 0
}

func (f *file) destroySRQ(c call) syscall.Errno {
	h := uint32(c.value("HANDLE"))
	s := f.srqs[h]
	if s == nil {
		return unix.ENOENT
	}
	if err := s.core.Close(); err != nil {
		return errnoOf(err)
	}
	f.dropRecord(s.addr)
	delete(f.srqs, h)
	s.pd.used--
	put32(c.out("RESP"), s.async)
	return 0
}
