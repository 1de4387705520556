package mlx5dev

import (
	"context"
	"encoding/binary"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

func beUint64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// call is a request with its attributes at hand.
type call struct{ *uverbs.Call }

func (c call) in(name string) []byte  { return c.Attr(name).Bytes }
func (c call) out(name string) []byte { return c.Attr(name).Bytes }

// value is a handle, descriptor or number.
func (c call) value(name string) uint64 { return binary.NativeEndian.Uint64(c.Attr(name).Value) }
func (c call) setValue(name string, v uint64) {
	binary.NativeEndian.PutUint64(c.Attr(name).Value, v)
}

func put32(b []byte, v uint32) { binary.NativeEndian.PutUint32(b, v) }
func get32(b []byte) uint32    { return binary.NativeEndian.Uint32(b) }

// ioctl answers a request as the kernel and the driver do.
func (d *Device) ioctl(fd int, page []byte) syscall.Errno {
	d.mu.RLock()
	f := d.files[fd]
	d.mu.RUnlock()
	if f == nil {
		return unix.EBADF
	}
	decoded, err := uverbs.Decode(page)
	if err != nil {
		d.fault(&Fault{Object: "ioctl", Rule: err.Error()})
		return unix.EINVAL
	}
	c := call{decoded}
	if c.DriverID != uverbs.DriverMLX5 {
		return unix.EINVAL
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Op == "open context" {
		return f.open(c)
	}
	if f.ctx == nil {
		return unix.EINVAL
	}
	run := handlers[c.Op]
	if run == nil {
		return unix.EPROTONOSUPPORT
	}
	return run(f, c)
}

var handlers = map[string]func(*file, call) syscall.Errno{
	"open async event file":         (*file).allocAsync,
	"query device":                  (*file).queryDevice,
	"query port":                    (*file).queryPort,
	"query GID table":               (*file).queryGIDs,
	"allocate protection domain":    (*file).allocPD,
	"deallocate protection domain":  (*file).deallocPD,
	"register memory region":        (*file).regMR,
	"deregister memory region":      (*file).deregMR,
	"change memory region":          (*file).reregMR,
	"register dmabuf memory region": (*file).regDMABufMR,
	"advise on memory region":       (*file).adviseMR,
	"allocate memory window":        (*file).allocMW,
	"free memory window":            (*file).freeMW,
	"create completion channel":     (*file).createChannel,
	"create completion queue":       (*file).createCQ,
	"destroy completion queue":      (*file).destroyCQ,
	"resize completion queue":       (*file).resizeCQ,
	"create shared receive queue":   (*file).createSRQ,
	"arm shared receive queue":      (*file).armSRQ,
	"query shared receive queue":    (*file).querySRQ,
	"destroy shared receive queue":  (*file).destroySRQ,
	"create queue pair":             (*file).createQP,
	"modify queue pair":             (*file).modifyQP,
	"query queue pair":              (*file).queryQP,
	"destroy queue pair":            (*file).destroyQP,
	"allocate UAR":                  (*file).allocUAR,
	"destroy UAR":                   (*file).destroyUAR,
}

// errnoOf is the errno of an error of the simulated NIC.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, verbs.ErrDeviceLost):
		return unix.EIO
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, qp.ErrTransition):
		return unix.EINVAL
	case errors.Is(err, verbs.ErrLimit):
		return unix.ENOMEM
	}
	return unix.EINVAL
}

func (f *file) open(c call) syscall.Errno {
	in, out := c.in("UHW_IN"), c.out("UHW_OUT")
	if f.ctx != nil || len(in) < 16 || len(out) < 72 {
		return unix.EINVAL
	}
	ctx, err := f.dev.hw.Open()
	if err != nil {
		return errnoOf(err)
	}
	f.ctx = ctx.(*sim.Context)
	cfg := &f.dev.cfg
	attr, _ := f.ctx.Attr()
	put32(c.out("NUM_COMP_VECTORS"), uint32(attr.CompVectors))
	binary.NativeEndian.PutUint64(c.out("CORE_SUPPORT"), 1) // optional access flags are taken
	ctxRespBFRegSize.Put(out, bfRegSize)
	ctxRespCacheLine.Put(out, 64)
	ctxRespSendDesc.Put(out, maxSendDesc)
	ctxRespRecvDesc.Put(out, maxRecvDesc)
	ctxRespSendBlocks.Put(out, maxSendBlocks)
	ctxRespRecvWR.Put(out, maxRecvWR)
	ctxRespSharedWR.Put(out, maxSharedWR)
	ctxRespPorts.Put(out, uint16(f.dev.hw.Info().Ports))
	ctxRespLength.Put(out, 72)
	ctxRespLogUARSize.Put(out, 12)
	ctxRespUARsPerPage.Put(out, 1)
	if len(in) > int(ctxReqMaxCQEVersion) && ctxReqMaxCQEVersion.Get(in) > 0 && !cfg.CQEVersion0 {
		ctxRespCQEVersion.Put(out, 1)
	}
	if cfg.BFRegs == 0 && len(in) > int(ctxReqLibCaps) && ctxReqLibCaps.Get(in)&ctxDynamicUARs != 0 {
		ctxRespDynBFRegs.Put(out, 512)
		return 0
	}
	n := cfg.BFRegs
	if n == 0 {
		n = int(ctxReqBFRegs.Get(in))
	}
	ctxRespBFRegs.Put(out, uint32(n))
	for i := range n / registers {
		if errno := f.addUAR(uint32(i), int64(i)*uarPageSize); errno != 0 {
			return errno
		}
	}
	return 0
}

func (f *file) allocAsync(c call) syscall.Errno {
	if f.async != 0 {
		return unix.EINVAL
	}
	r, w, errno := pipe()
	if errno != 0 {
		return errno
	}
	f.async = w
	c.setValue("FD_HANDLE", uint64(r))
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.reading.Go(func() { f.forward(ctx) })
	return 0
}

func (f *file) createChannel(c call) syscall.Errno {
	r, w, errno := pipe()
	if errno != 0 {
		return errno
	}
	if old, ok := f.channels[r]; ok { // the process has closed that channel: nothing tells the model
		unix.Close(old)
	}
	f.channels[r] = w
	put32(c.out("CORE_OUT"), uint32(r))
	return 0
}

func (f *file) allocUAR(c call) syscall.Errno {
	if c.value("TYPE") > 1 {
		return unix.EINVAL
	}
	d := f.dev
	d.mu.Lock()
	d.pages++
	page := d.pages
	d.mu.Unlock()
	if page > 0xffff {
		return unix.ENOMEM
	}
	offset := (1<<16 + page) * uarPageSize
	if errno := f.addUAR(uint32(page), offset); errno != 0 {
		return errno
	}
	h := d.handle()
	f.handles[h] = uint32(page)
	c.setValue("HANDLE", uint64(h))
	binary.NativeEndian.PutUint64(c.out("MMAP_OFFSET"), uint64(offset))
	put32(c.out("MMAP_LENGTH"), uarPageSize)
	put32(c.out("PAGE_ID"), uint32(page))
	return 0
}

func (f *file) destroyUAR(c call) syscall.Errno {
	h := uint32(c.value("HANDLE"))
	page, ok := f.handles[h]
	if !ok {
		return unix.ENOENT
	}
	f.dropUAR(f.uars[page])
	delete(f.uars, page)
	delete(f.handles, h)
	return 0
}

func (f *file) allocPD(c call) syscall.Errno {
	if c.Attr("UHW_OUT") == nil || len(c.out("UHW_OUT")) < 4 {
		return unix.EINVAL // the driver writes the domain's number
	}
	pd, err := f.ctx.AllocPD()
	if err != nil {
		return errnoOf(err)
	}
	h := f.dev.handle()
	f.pds[h] = &domain{core: pd}
	put32(c.out("CORE_OUT"), h)
	put32(c.out("UHW_OUT"), h&indexMask)
	return 0
}

func (f *file) deallocPD(c call) syscall.Errno {
	h := uint32(c.value("HANDLE"))
	pd := f.pds[h]
	switch {
	case pd == nil:
		return unix.ENOENT
	case pd.used > 0:
		return unix.EBUSY
	}
	delete(f.pds, h)
	return errnoOf(pd.core.Close())
}

func (f *file) regMR(c call) syscall.Errno {
	in, out := c.in("CORE_IN"), c.out("CORE_OUT")
	pd := f.pds[regMRPDHandle.Get(in)]
	addr, n := regMRStart.Get(in), regMRLength.Get(in)
	if pd == nil || n == 0 || regMRHcaVA.Get(in) != addr {
		return unix.EINVAL
	}
	access := mr.Access(regMRAccessFlags.Get(in))
	r, err := pd.core.Register(memory(addr, int(n)), access)
	if err != nil {
		return errnoOf(err)
	}
	pd.used++
	h := f.dev.handle()
	f.mrs[h] = &region{pd, r, access}
	regMRRespMRHandle.Put(out, h)
	regMRRespLkey.Put(out, uint32(r.LKey))
	regMRRespRkey.Put(out, uint32(r.RKey))
	return 0
}

func (f *file) deregMR(c call) syscall.Errno {
	h := uint32(c.value("HANDLE"))
	r := f.mrs[h]
	if r == nil {
		return unix.ENOENT
	}
	if err := r.pd.core.Deregister(r.core); err != nil {
		return errnoOf(err)
	}
	delete(f.mrs, h)
	r.pd.used--
	return 0
}

func (f *file) allocMW(c call) syscall.Errno {
	in, out := c.in("CORE_IN"), c.out("CORE_OUT")
	pd := f.pds[allocMWPDHandle.Get(in)]
	if pd == nil || allocMWType.Get(in) != windowType2 {
		return unix.EINVAL
	}
	m, err := verbs.MemoryOf(pd.core)
	if err != nil {
		return errnoOf(err)
	}
	w, err := m.AllocWindow()
	if err != nil {
		return errnoOf(err)
	}
	pd.used++
	h := f.dev.handle()
	f.windows[h] = &window{pd, m, w}
	allocMWRespMWHandle.Put(out, h)
	allocMWRespRkey.Put(out, uint32(w.RKey))
	return 0
}

func (f *file) freeMW(c call) syscall.Errno {
	h := uint32(c.value("HANDLE"))
	w := f.windows[h]
	if w == nil {
		return unix.ENOENT
	}
	delete(f.windows, h)
	w.pd.used--
	return errnoOf(w.mem.FreeWindow(w.core))
}
