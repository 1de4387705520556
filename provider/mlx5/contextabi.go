package mlx5

import (
	"fmt"

	"github.com/byteexpress/byteexpress/qp"
)

// contextRequest is the driver's part of the request for a context.
func contextRequest(flags uint32) []byte {
	b := make([]byte, contextReqSize)
	contextReqTotalBFRegs.Put(b, contextReqDefaultBFRegs)
	contextReqLowLatencyBFRegs.Put(b, 4) // as rdma-core's default
	contextReqFlags.Put(b, flags)
	contextReqMaxCQEVersion.Put(b, cqeVersionUIDX)
	contextReqLibCaps.Put(b, contextReqLibCap4KUAR|contextReqLibCapDynamicUARs)
	return b
}

// contextAnswer is what the driver says about a context.
type contextAnswer struct {
	limits      limits
	cqeVersion  uint8
	bfRegSize   int // bytes of a register's two buffers; 0: no BlueFlame, and one place for all registers
	bfRegs      int // registers given at once; 0: pages of them are asked for
	uarsPerPage int
}

// otherDriver is what is wrong when the driver's answers make no sense.
const otherDriver = "the kernel's mlx5 driver is of another kind than this program knows"

// Bounds of what a driver may say of registers: those for queue pairs end with their
// UAR, and there are more of them than were asked for only by rounding up.
const (
	maxBFRegSize = (uarSize - firstRegister) / registersInUAR
	maxBFRegs    = 1 << 16 // mlx5_ib has up to 1024
)

// check reports an answer that no register can be found by.
func (a *contextAnswer) check() error {
	if n := a.bfRegSize; n > maxBFRegSize || n&(n-1) != 0 {
		return fmt.Errorf("doorbell registers of %d bytes, must be a power of two of at most %d", n, maxBFRegSize)
	}
	if a.bfRegs > maxBFRegs || a.uarsPerPage > maxBFRegs {
		return fmt.Errorf("%d doorbell registers at once and %d UARs a page, at most %d are expected", a.bfRegs, a.uarsPerPage, maxBFRegs)
	}
	return nil
}

func readContextAnswer(b []byte) contextAnswer {
	size := int(contextRespBFRegSize.Get(b))
	if size < 16 { // a NIC without BlueFlame: drivers say 0, or 1
		size = 0
	}
	return contextAnswer{
		limits: limits{
			sendDesc: int(contextRespMaxSQDescSize.Get(b)), recvDesc: int(contextRespMaxRQDescSize.Get(b)),
			sendBlocks: int(contextRespMaxSendBlocks.Get(b)), recvWR: int(contextRespMaxRecvWR.Get(b)),
			sharedWR: min(int(contextRespMaxSRQRecvWR.Get(b)), 1<<16),
		},
		cqeVersion: contextRespCQEVersion.Get(b), bfRegSize: size, bfRegs: int(contextRespTotBFRegs.Get(b)),
		uarsPerPage: max(int(contextRespUARsPerPage.Get(b)), 1),
	}
}

// cqRequest is the driver's part of the request for a completion queue with entries
// of that many bytes. page names the UAR page to arm by; nil: that of the context.
func cqRequest(buf, record uint64, entry int, page *uarPage) []byte {
	b := make([]byte, createCQSize)
	createCQBufAddr.Put(b, buf)
	createCQDBAddr.Put(b, record)
	createCQCQESize.Put(b, uint32(entry))
	if page != nil {
		createCQFlags.Put(b, createCQFlagUARIndex)
		createCQUARPageIndex.Put(b, uint16(page.id))
	}
	return b
}

// resizeRequest is the driver's part of the request for another size.
func resizeRequest(buf uint64, entry int) []byte {
	b := make([]byte, resizeCQSize)
	resizeCQBufAddr.Put(b, buf)
	resizeCQCQESize.Put(b, uint16(entry))
	return b
}

// srqRequest is the driver's part of the request for a shared receive queue.
func srqRequest(buf, record uint64) []byte {
	b := make([]byte, createSRQSize)
	createSRQBufAddr.Put(b, buf)
	createSRQDBAddr.Put(b, record)
	return b
}

// qpRequest is the driver's part of the request for a queue pair. page names the
// UAR page of its doorbell; nil: the driver chooses a register of the context's.
// inside asks for short payload inside completions.
func qpRequest(buf, record uint64, s *sizes, uidx uint32, page *uarPage, inside bool) []byte {
	b := make([]byte, createQPSize)
	createQPBufAddr.Put(b, buf)
	createQPDBAddr.Put(b, record)
	createQPSQCount.Put(b, uint32(s.sendBlocks))
	createQPRQCount.Put(b, uint32(s.recvSlots))
	createQPRQShift.Put(b, uint32(s.recvShift))
	createQPUIDX.Put(b, uidx)
	flags := uint32(0)
	if inside {
		flags |= createQPFlagScatterCQE
	}
	if page != nil {
		flags |= createQPFlagUARIndex
		createQPBFRegIndex.Put(b, page.id)
	}
	createQPFlags.Put(b, flags)
	return b
}

// kernelCaps are the capacities that the kernel is told: those asked for, with the
// inline bytes that a request's size leaves.
func kernelCaps(want qp.Caps, s *sizes) qp.Caps {
	want.Inline = s.caps.Inline
	return want
}
