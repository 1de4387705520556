//go:build linux

package uverbs

import (
	"encoding/binary"
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// QPConfig asks for a reliable-connection queue pair.
type QPConfig struct {
	PD         PDHandle
	SendCQ     CQHandle
	RecvCQ     CQHandle
	Caps       qp.Caps
	SigAll     bool
	SRQ        *SRQHandle // nil: a receive queue of its own
	UserHandle uint64     // comes back in events; never a pointer
}

// String says what was asked for, for errors.
func (a *QPConfig) String() string {
	return fmt.Sprintf("with %+v", a.Caps)
}

// CreateQP makes a queue pair in RESET. The capacities are what the kernel says it
// gave, in the same fields.
func (c *Context) CreateQP(a *QPConfig, uhw *UHW) (h QPHandle, num qp.Num, caps qp.Caps, err error) {
	err = c.withFallback(mQPCreate,
		func() (err error) { h, num, caps, err = c.createQP(a, uhw); return err },
		func() (err error) { h, num, caps, err = c.createQPByWrite(a, uhw); return err })
	return h, num, caps, err
}

func (c *Context) createQP(a *QPConfig, uhw *UHW) (QPHandle, qp.Num, qp.Caps, error) {
	r, err := c.begin(mQPCreate, 3*24+uhw.room())
	if err != nil {
		return 0, 0, qp.Caps{}, err
	}
	defer r.release()
	handle := r.result(attrQPHandle, kindNewHandle)
	r.handle(attrQPPDHandle, uint32(a.PD))
	if a.SRQ != nil {
		r.handle(attrQPSRQHandle, uint32(*a.SRQ))
	}
	r.handle(attrQPSendCQHandle, uint32(a.SendCQ))
	r.handle(attrQPRecvCQHandle, uint32(a.RecvCQ))
	binary.NativeEndian.PutUint64(r.in(attrQPUserHandle, 8), a.UserHandle)
	in := r.in(attrQPCap, qpCapSize)
	qpCapMaxSendWR.Put(in, uint32(a.Caps.SendWR))
	qpCapMaxRecvWR.Put(in, uint32(a.Caps.RecvWR))
	qpCapMaxSendSGE.Put(in, uint32(a.Caps.SendSGE))
	qpCapMaxRecvSGE.Put(in, uint32(a.Caps.RecvSGE))
	qpCapMaxInlineData.Put(in, uint32(a.Caps.Inline))
	r.constant(attrQPType, qpTypeRC)
	if a.SigAll {
		r.flags(attrQPFlags, qpCreateSigAll)
	}
	r.fd(attrQPEventFD, c.asyncFD)
	out := r.out(attrQPRespCap, qpCapSize)
	num := r.out(attrQPRespQPNum, 4)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, 0, qp.Caps{}, c.fail(r.m, a.String(), errno)
	}
	uhw.reply(reply)
	return QPHandle(attrData.Get(handle)), qp.Num(u32(num)), qp.Caps{
		SendWR: int(qpCapMaxSendWR.Get(out)), RecvWR: int(qpCapMaxRecvWR.Get(out)),
		SendSGE: int(qpCapMaxSendSGE.Get(out)), RecvSGE: int(qpCapMaxRecvSGE.Get(out)), Inline: int(qpCapMaxInlineData.Get(out)),
	}, nil
}

func (c *Context) createQPByWrite(a *QPConfig, uhw *UHW) (QPHandle, qp.Num, qp.Caps, error) {
	r, err := c.begin(wCreateQP, createQPSize+createQPRespSize+uhw.room())
	if err != nil {
		return 0, 0, qp.Caps{}, err
	}
	defer r.release()
	in := r.in(attrCoreIn, createQPSize)
	createQPUserHandle.Put(in, a.UserHandle)
	createQPPDHandle.Put(in, uint32(a.PD))
	createQPSendCQHandle.Put(in, uint32(a.SendCQ))
	createQPRecvCQHandle.Put(in, uint32(a.RecvCQ))
	if a.SRQ != nil {
		createQPSRQHandle.Put(in, uint32(*a.SRQ))
		createQPIsSRQ.Put(in, 1)
	}
	createQPMaxSendWR.Put(in, uint32(a.Caps.SendWR))
	createQPMaxRecvWR.Put(in, uint32(a.Caps.RecvWR))
	createQPMaxSendSGE.Put(in, uint32(a.Caps.SendSGE))
	createQPMaxRecvSGE.Put(in, uint32(a.Caps.RecvSGE))
	createQPMaxInlineData.Put(in, uint32(a.Caps.Inline))
	if a.SigAll {
		createQPSQSigAll.Put(in, 1)
	}
	createQPQPType.Put(in, qpTypeRC)
	out := r.out(attrCoreOut, createQPRespSize)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return 0, 0, qp.Caps{}, c.fail(r.m, a.String(), errno)
	}
	uhw.reply(reply)
	return QPHandle(createQPRespQPHandle.Get(out)), qp.Num(createQPRespQPN.Get(out)), qp.Caps{
		SendWR: int(createQPRespMaxSendWR.Get(out)), RecvWR: int(createQPRespMaxRecvWR.Get(out)),
		SendSGE: int(createQPRespMaxSendSGE.Get(out)), RecvSGE: int(createQPRespMaxRecvSGE.Get(out)), Inline: int(createQPRespMaxInlineData.Get(out)),
	}, nil
}

// DestroyQP destroys a queue pair.
func (c *Context) DestroyQP(h QPHandle) (n Reported, err error) {
	err = c.destroyReported(mQPDestroy, wDestroyQP, destroyQPQPHandle, uint32(h), func(out []byte) {
		n.Async = destroyQPRespEventsReported.Get(out)
	})
	return n, err
}

// ModifyQP sets the attributes named by mask. Going to RTR on Ethernet, the kernel
// resolves the peer's address, which can take time and fail.
func (c *Context) ModifyQP(h QPHandle, a *qp.Attr, mask qp.AttrMask) error {
	r, err := c.begin(mModifyQP, modifyQPSize)
	if err != nil {
		return err
	}
	defer r.release()
	in := r.in(attrCoreIn, modifyQPSize)
	modifyQPQPHandle.Put(in, uint32(h))
	modifyQPAttrMask.Put(in, uint32(mask))
	putQPAttr(in, a, mask)
	if errno := r.do(); errno != 0 {
		return c.fail(r.m, describe(a, mask), errno)
	}
	return nil
}

// putQPAttr writes the attributes of the mask; the rest stays 0.
func putQPAttr(in []byte, a *qp.Attr, mask qp.AttrMask) {
	if mask&qp.MaskAV != 0 {
		putAV(modifyQPDest.In(in), &a.AV)
	}
	for _, f := range []struct {
		bit qp.AttrMask
		put func()
	}{
		{qp.MaskState, func() { modifyQPQPState.Put(in, uint8(a.State)) }},
		{qp.MaskCurState, func() { modifyQPCurQPState.Put(in, uint8(a.CurState)) }},
		{qp.MaskSQDNotify, func() { modifyQPEnSqdAsyncNotify.Put(in, 1) }},
		{qp.MaskAccess, func() { modifyQPQPAccessFlags.Put(in, uint32(a.Access)) }},
		{qp.MaskPKeyIndex, func() { modifyQPPKeyIndex.Put(in, a.PKeyIndex) }},
		{qp.MaskPort, func() { modifyQPPortNum.Put(in, a.Port) }},
		{qp.MaskPathMTU, func() { modifyQPPathMTU.Put(in, uint8(a.PathMTU)) }},
		{qp.MaskAckTimeout, func() { modifyQPTimeout.Put(in, uint8(a.AckTimeout)) }},
		{qp.MaskRetryCount, func() { modifyQPRetryCnt.Put(in, a.RetryCount) }},
		{qp.MaskRNRRetry, func() { modifyQPRNRRetry.Put(in, a.RNRRetry) }},
		{qp.MaskRecvPSN, func() { modifyQPRQPSN.Put(in, uint32(a.RecvPSN)) }},
		{qp.MaskMaxReads, func() { modifyQPMaxRdAtomic.Put(in, a.MaxReads) }},
		{qp.MaskRNRTimer, func() { modifyQPMinRNRTimer.Put(in, uint8(a.RNRTimer)) }},
		{qp.MaskSendPSN, func() { modifyQPSQPSN.Put(in, uint32(a.SendPSN)) }},
		{qp.MaskMaxDestReads, func() { modifyQPMaxDestRdAtomic.Put(in, a.MaxDestReads) }},
		{qp.MaskDestNum, func() { modifyQPDestQPNum.Put(in, uint32(a.DestNum)) }},
	} {
		if mask&f.bit != 0 {
			f.put()
		}
	}
}

func putAV(b []byte, av *qp.AV) {
	if av.Global {
		copy(qpDestDGID.In(b), av.DGID[:])
		qpDestFlowLabel.Put(b, av.FlowLabel)
		qpDestSgidIndex.Put(b, av.SGIDIndex)
		qpDestHopLimit.Put(b, av.HopLimit)
		qpDestTrafficClass.Put(b, av.TrafficClass)
		qpDestIsGlobal.Put(b, 1)
	}
	qpDestDLID.Put(b, av.LID)
	qpDestSL.Put(b, av.SL)
	qpDestSrcPathBits.Put(b, av.SrcPathBits)
	qpDestStaticRate.Put(b, av.StaticRate)
	qpDestPortNum.Put(b, av.Port)
}

// describe says what a modify asked for.
func describe(a *qp.Attr, mask qp.AttrMask) string {
	s := fmt.Sprintf("(%v)", mask)
	if mask&qp.MaskState != 0 {
		s = fmt.Sprintf("to %v", a.State)
	}
	if mask&qp.MaskAV != 0 {
		s += fmt.Sprintf(", GID index %d, peer's GID %x, MTU %v", a.AV.SGIDIndex, a.AV.DGID, a.PathMTU)
	}
	return s
}

// QueryQP asks for a queue pair's attributes.
func (c *Context) QueryQP(h QPHandle) (qp.Attr, error) {
	r, err := c.begin(mQueryQP, queryQPSize+queryQPRespSize)
	if err != nil {
		return qp.Attr{}, err
	}
	defer r.release()
	in := r.in(attrCoreIn, queryQPSize)
	queryQPQPHandle.Put(in, uint32(h))
	queryQPAttrMask.Put(in, uint32(qp.MaskDestNum<<1-1)) // all of them
	b := r.out(attrCoreOut, queryQPRespSize)
	if errno := r.do(); errno != 0 {
		return qp.Attr{}, c.fail(r.m, fmt.Sprintf("handle %d", h), errno)
	}
	d := queryQPRespDest.In(b)
	return qp.Attr{
		State: qp.State(queryQPRespQPState.Get(b)), CurState: qp.State(queryQPRespCurQPState.Get(b)), PathMTU: qp.MTU(queryQPRespPathMTU.Get(b)),
		SendPSN: qp.PSN(queryQPRespSQPSN.Get(b)), RecvPSN: qp.PSN(queryQPRespRQPSN.Get(b)), DestNum: qp.Num(queryQPRespDestQPNum.Get(b)),
		Access: mr.Access(queryQPRespQPAccessFlags.Get(b)), PKeyIndex: queryQPRespPKeyIndex.Get(b), Port: queryQPRespPortNum.Get(b),
		MaxReads: queryQPRespMaxRdAtomic.Get(b), MaxDestReads: queryQPRespMaxDestRdAtomic.Get(b), RNRTimer: qp.RNRTimer(queryQPRespMinRNRTimer.Get(b)),
		AckTimeout: qp.AckTimeout(queryQPRespTimeout.Get(b)), RetryCount: queryQPRespRetryCnt.Get(b), RNRRetry: queryQPRespRNRRetry.Get(b),
		AV: qp.AV{
			DGID: [16]byte(qpDestDGID.In(d)[:16]), FlowLabel: qpDestFlowLabel.Get(d), LID: qpDestDLID.Get(d), SGIDIndex: qpDestSgidIndex.Get(d),
			HopLimit: qpDestHopLimit.Get(d), TrafficClass: qpDestTrafficClass.Get(d), SL: qpDestSL.Get(d), SrcPathBits: qpDestSrcPathBits.Get(d),
			StaticRate: qpDestStaticRate.Get(d), Port: qpDestPortNum.Get(d), Global: qpDestIsGlobal.Get(d) != 0,
		},
	}, nil
}
