package mlx5dev

import (
	"fmt"
	"math/bits"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// refuse notes why a request was not taken.
func (f *file) refuse(op, rule string) syscall.Errno {
	f.dev.fault(&Fault{Object: op, Rule: rule})
	return unix.EINVAL
}

func (f *file) createCQ(c call) syscall.Errno {
	const op = "create completion queue"
	in, out := c.in("UHW_IN"), c.out("UHW_OUT")
	if len(in) < 32 || len(out) < 8 {
		return f.refuse(op, "driver's part is missing or short")
	}
	slots := int(get32(c.in("CQE"))) + 1
	buf, record, size := cqReqBuf.Get(in), cqReqRecord.Get(in), int(cqReqEntrySize.Get(in))
	page := uint32(cqReqUAR.Get(in))
	_, known := f.uars[page]
	switch dynamic := f.dev.cfg.BFRegs == 0; {
	case slots < 2 || slots&(slots-1) != 0:
		return f.refuse(op, fmt.Sprintf("%d entries, must be a power of two", slots))
	case buf%uarPageSize != 0 || buf == 0:
		return f.refuse(op, fmt.Sprintf("ring at %#x is not on a page", buf))
	case record%8 != 0 || record == 0:
		return f.refuse(op, fmt.Sprintf("doorbell record at %#x is not aligned to 8", record))
	case size != entry && size != longEntry || cqReqCompressed.Get(in) != 0:
		return f.refuse(op, fmt.Sprintf("entries of %d bytes, or compressed", size))
	case dynamic && (cqReqFlags.Get(in) != cqFlagUAR || !known), !dynamic && cqReqFlags.Get(in) != 0:
		return f.refuse(op, fmt.Sprintf("flags %#x and UAR page %d do not fit this context", cqReqFlags.Get(in), page))
	}
	q := &compQueue{dev: f.dev, user: c.value("USER_HANDLE"), uidx: !f.dev.cfg.CQEVersion0, ring: memory(buf, slots*size), size: size, record: memory(record, 8)}
	if i := written(q.ring, size); i >= 0 {
		return f.refuse(op, fmt.Sprintf("entry %d of the new ring is not marked invalid", i))
	}
	if ch := c.Attr("COMP_CHANNEL"); ch != nil {
		if q.events = f.channels[int(int32(c.value("COMP_CHANNEL")))]; q.events == 0 {
			return unix.EBADF
		}
	}
	core, err := f.ctx.CreateSinkCQ(verbs.CQConfig{Entries: slots - 1, Vector: int(get32(c.in("COMP_VECTOR")))}, q.write)
	if err != nil {
		return errnoOf(err)
	}
	q.core = core
	h := f.dev.handle()
	q.number = h & indexMask
	f.cqs[h] = q
	d := f.dev
	d.mu.Lock()
	d.cqs[q.number] = q
	d.mu.Unlock()
	c.setValue("HANDLE", uint64(h))
	put32(c.out("RESP_CQE"), uint32(slots-1))
	cqRespNumber.Put(out, q.number)
	return 0
}

// written gives the first entry of a new ring that is not marked invalid, or -1.
func written(ring []byte, size int) int {
	for i := size - 1; i < len(ring); i += size {
		if ring[i] != ownInvalid {
			return i / size
		}
	}
	return -1
}

func (f *file) resizeCQ(c call) syscall.Errno {
	const op = "resize completion queue"
	in := c.in("UHW_IN")
	if len(in) < 16 {
		return f.refuse(op, "driver's part is missing or short")
	}
	q := f.cqs[resizeCQCQHandle.Get(c.in("CORE_IN"))]
	if q == nil {
		return unix.ENOENT
	}
	slots, buf := int(resizeCQCQE.Get(c.in("CORE_IN")))+1, resizeReqBuf.Get(in)
	switch {
	case slots < 2 || slots&(slots-1) != 0:
		return f.refuse(op, fmt.Sprintf("%d entries, must be a power of two", slots))
	case buf%uarPageSize != 0 || buf == 0:
		return f.refuse(op, fmt.Sprintf("ring at %#x is not on a page", buf))
	case int(resizeReqEntrySize.Get(in)) != q.size:
		return f.refuse(op, fmt.Sprintf("entries of %d bytes, were %d", resizeReqEntrySize.Get(in), q.size))
	}
	ring := memory(buf, slots*q.size)
	if i := written(ring, q.size); i >= 0 {
		return f.refuse(op, fmt.Sprintf("entry %d of the new ring is not marked invalid", i))
	}
	if err := q.core.Resize(slots - 1); err != nil {
		return errnoOf(err)
	}
	if !q.resize(ring) {
		return f.refuse(op, "the old ring has no room for the entry that tells of it")
	}
	resizeCQRespCQE.Put(c.out("CORE_OUT"), uint32(slots-1))
	return 0
}

func (f *file) destroyCQ(c call) syscall.Errno {
	h := uint32(c.value("HANDLE"))
	q := f.cqs[h]
	if q == nil {
		return unix.ENOENT
	}
	if err := q.core.Close(); err != nil {
		return errnoOf(err)
	}
	f.dropCQ(q)
	delete(f.cqs, h)
	put32(c.out("RESP"), q.sn)
	put32(c.out("RESP")[4:], q.async)
	return 0
}

// sizesOf reads and checks the shape of a queue pair's rings.
func sizesOf(in []byte, shared bool) (sendBlocks, recvSlots, recvShift uint32, rule string) {
	sendBlocks, recvSlots, recvShift = qpReqSendBlocks.Get(in), qpReqRecvSlots.Get(in), qpReqRecvShift.Get(in)
	switch {
	case bits.OnesCount32(sendBlocks) != 1 || sendBlocks > maxSendBlocks:
		rule = fmt.Sprintf("%d send blocks, must be a power of two up to %d", sendBlocks, maxSendBlocks)
	case shared && (recvSlots != 0 || recvShift != 0):
		rule = fmt.Sprintf("%d receive slots of 2^%d bytes beside a shared receive queue", recvSlots, recvShift)
	case shared:
	case bits.OnesCount32(recvSlots) != 1 || recvSlots > maxRecvWR:
		rule = fmt.Sprintf("%d receive slots, must be a power of two up to %d", recvSlots, maxRecvWR)
	case recvShift < 4 || 1<<recvShift > maxRecvDesc:
		rule = fmt.Sprintf("receive slots of 2^%d bytes, must be 16 to %d", recvShift, maxRecvDesc)
	case recvSlots<<recvShift < block:
		rule = "receive queue of less than 64 bytes"
	}
	return sendBlocks, recvSlots, recvShift, rule
}

func (f *file) createQP(c call) syscall.Errno {
	const op = "create queue pair"
	in, out := c.in("UHW_IN"), c.out("UHW_OUT")
	if len(in) < 56 || len(out) < 40 {
		return f.refuse(op, "driver's part is missing or short")
	}
	pd, send, recv := f.pds[uint32(c.value("PD_HANDLE"))], f.cqs[uint32(c.value("SEND_CQ_HANDLE"))], f.cqs[uint32(c.value("RECV_CQ_HANDLE"))]
	if pd == nil || send == nil || recv == nil {
		return unix.ENOENT
	}
	var srq *sharedQueue
	if c.Attr("SRQ_HANDLE") != nil {
		if srq = f.srqs[uint32(c.value("SRQ_HANDLE"))]; srq == nil {
			return unix.ENOENT
		}
	}
	blocks, slots, shift, rule := sizesOf(in, srq != nil)
	flags := qpReqFlags.Get(in)
	inside := flags&qpFlagInside != 0
	flags &^= qpFlagInside
	buf, record, uidx := qpReqBuf.Get(in), qpReqRecord.Get(in), qpReqUIDX.Get(in)
	_, known := f.uars[qpReqUAR.Get(in)]
	switch dynamic := f.dev.cfg.BFRegs == 0; {
	case rule != "":
	case buf%uarPageSize != 0 || buf == 0:
		rule = fmt.Sprintf("rings at %#x are not on a page", buf)
	case record%8 != 0 || record == 0:
		rule = fmt.Sprintf("doorbell record at %#x is not aligned to 8", record)
	case dynamic && (flags != qpFlagUAR || !known), !dynamic && flags != 0:
		rule = fmt.Sprintf("flags %#x and UAR page %d do not fit this context", flags, qpReqUAR.Get(in))
	case f.dev.cfg.CQEVersion0 != (uidx == indexMask) || uidx > indexMask:
		rule = fmt.Sprintf("user index %#x does not fit the completion format", uidx)
	}
	if rule != "" {
		return f.refuse(op, rule)
	}
	caps := c.in("CAP")
	sges := int(qpCapMaxSendSGE.Get(caps))
	inline := int(qpCapMaxInlineData.Get(caps))
	cfg := verbs.QPConfig{SendCQ: send.core, RecvCQ: recv.core, Caps: qp.Caps{
		SendWR: int(blocks), RecvWR: int(slots), SendSGE: sges, RecvSGE: 1 << shift / segment, Inline: inline}}
	if srq != nil {
		cfg.SRQ = srq.core
	}
	core, err := pd.core.CreateQP(cfg)
	if err != nil {
		return errnoOf(err)
	}
	recvBytes := int(slots) << shift
	ring := memory(buf, recvBytes+int(blocks)*block)
	q := &queuePair{dev: f.dev, number: uint32(core.Num()), uidx: uidx, user: c.value("USER_HANDLE"), core: core, sendCQ: send, recvCQ: recv,
		srq: srq, inside: inside, record: memory(record, 8), addr: record}
	q.sq.ring, q.rq.ring, q.rq.shift = ring[recvBytes:], ring[:recvBytes:recvBytes], shift
	q.sq.dec = decoder{qpn: q.number, maxSGE: sges, maxInline: inline}
	pd.used++
	q.pd = pd
	h := f.dev.handle()
	f.qps[h] = q
	d := f.dev
	d.mu.Lock()
	d.qps[q.number], d.records[record] = q, q
	d.mu.Unlock()
	c.setValue("HANDLE", uint64(h))
	put32(c.out("RESP_QP_NUM"), q.number)
	copy(c.out("RESP_CAP"), caps)
	if f.dev.cfg.BFRegs > 0 {
		qpRespBFReg.Put(out, q.number%uint32(min(f.dev.cfg.BFRegs, registers)))
	}
	return 0
}

func (f *file) destroyQP(c call) syscall.Errno {
	h := uint32(c.value("HANDLE"))
	q := f.qps[h]
	if q == nil {
		return unix.ENOENT
	}
	f.dropQP(q)
	delete(f.qps, h)
	q.pd.used--
	put32(c.out("RESP"), q.async)
	return errnoOf(q.core.Close())
}

func (f *file) modifyQP(c call) syscall.Errno {
	in := c.in("CORE_IN")
	q := f.qps[modifyQPQPHandle.Get(in)]
	if q == nil {
		return unix.ENOENT
	}
	d := modifyQPDest.In(in)
	mask := qp.AttrMask(modifyQPAttrMask.Get(in))
	a := qp.Attr{
		State: qp.State(modifyQPQPState.Get(in)), CurState: qp.State(modifyQPCurQPState.Get(in)), PathMTU: qp.MTU(modifyQPPathMTU.Get(in)),
		SendPSN: qp.PSN(modifyQPSQPSN.Get(in)), RecvPSN: qp.PSN(modifyQPRQPSN.Get(in)), DestNum: qp.Num(modifyQPDestQPNum.Get(in)),
		Access: mr.Access(modifyQPQPAccessFlags.Get(in)), PKeyIndex: modifyQPPKeyIndex.Get(in), Port: modifyQPPortNum.Get(in),
		MaxReads: modifyQPMaxRdAtomic.Get(in), MaxDestReads: modifyQPMaxDestRdAtomic.Get(in), RNRTimer: qp.RNRTimer(modifyQPMinRNRTimer.Get(in)),
		AckTimeout: qp.AckTimeout(modifyQPTimeout.Get(in)), RetryCount: modifyQPRetryCnt.Get(in), RNRRetry: modifyQPRNRRetry.Get(in),
		AV: qp.AV{
			DGID: [16]byte(qpDestDGID.In(d)[:16]), FlowLabel: qpDestFlowLabel.Get(d), LID: qpDestDLID.Get(d), SGIDIndex: qpDestSgidIndex.Get(d),
			HopLimit: qpDestHopLimit.Get(d), TrafficClass: qpDestTrafficClass.Get(d), SL: qpDestSL.Get(d), SrcPathBits: qpDestSrcPathBits.Get(d),
			StaticRate: qpDestStaticRate.Get(d), Port: qpDestPortNum.Get(d), Global: qpDestIsGlobal.Get(d) != 0,
		},
	}
	if err := q.core.Modify(&a, mask); err != nil {
		return errnoOf(err)
	}
	if mask&qp.MaskState != 0 && a.State == qp.Reset {
		q.reset()
	}
	return 0
}

func (f *file) queryQP(c call) syscall.Errno {
	in, b := c.in("CORE_IN"), c.out("CORE_OUT")
	q := f.qps[queryQPQPHandle.Get(in)]
	if q == nil {
		return unix.ENOENT
	}
	a, err := q.core.Query()
	if err != nil {
		return errnoOf(err)
	}
	queryQPRespQPState.Put(b, uint8(a.State))
	queryQPRespCurQPState.Put(b, uint8(a.CurState))
	queryQPRespPathMTU.Put(b, uint8(a.PathMTU))
	queryQPRespSQPSN.Put(b, uint32(a.SendPSN))
	queryQPRespRQPSN.Put(b, uint32(a.RecvPSN))
	queryQPRespDestQPNum.Put(b, uint32(a.DestNum))
	queryQPRespQPAccessFlags.Put(b, uint32(a.Access))
	queryQPRespPKeyIndex.Put(b, a.PKeyIndex)
	queryQPRespPortNum.Put(b, a.Port)
	queryQPRespMaxRdAtomic.Put(b, a.MaxReads)
	queryQPRespMaxDestRdAtomic.Put(b, a.MaxDestReads)
	queryQPRespMinRNRTimer.Put(b, uint8(a.RNRTimer))
	queryQPRespTimeout.Put(b, uint8(a.AckTimeout))
	queryQPRespRetryCnt.Put(b, a.RetryCount)
	queryQPRespRNRRetry.Put(b, a.RNRRetry)
	d, av := queryQPRespDest.In(b), &a.AV
	copy(qpDestDGID.In(d), av.DGID[:])
	qpDestFlowLabel.Put(d, av.FlowLabel)
	qpDestDLID.Put(d, av.LID)
	qpDestSgidIndex.Put(d, av.SGIDIndex)
	qpDestHopLimit.Put(d, av.HopLimit)
	qpDestTrafficClass.Put(d, av.TrafficClass)
	qpDestSL.Put(d, av.SL)
	qpDestSrcPathBits.Put(d, av.SrcPathBits)
	qpDestStaticRate.Put(d, av.StaticRate)
	qpDestPortNum.Put(d, av.Port)
	if av.Global {
		qpDestIsGlobal.Put(d, 1)
	}
	return 0
}
