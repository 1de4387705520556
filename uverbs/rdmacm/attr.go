package rdmacm

import (
	"cmp"
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// knownAttrs are the attributes that package qp has. The kernel's mask also has bits
// that are its own (source MAC, alternate MAC, VLAN: 21 to 23).
const knownAttrs = qp.MaskState | qp.MaskCurState | qp.MaskAccess | qp.MaskPKeyIndex | qp.MaskPort | qp.MaskAV | qp.MaskPathMTU |
	qp.MaskAckTimeout | qp.MaskRetryCount | qp.MaskRNRRetry | qp.MaskRecvPSN | qp.MaskMaxReads | qp.MaskRNRTimer | qp.MaskSendPSN |
	qp.MaskMaxDestReads | qp.MaskDestNum

// decodeAttr reads a struct ib_uverbs_qp_attr and makes it fit for Modify: access is
// what the caller wants, for the kernel knows only a part of it; and the RNR timer,
// which the connection manager leaves at 0, the longest wait, is the usual one.
func decodeAttr(b []byte, access mr.Access) (a qp.Attr, mask qp.AttrMask, err error) {
	if len(b) < qpAttrSize {
		return a, 0, fmt.Errorf("queue pair attributes of %d bytes, %d needed", len(b), qpAttrSize)
	}
	ah := qpAttrAH.In(b)
	grh := ahGRH.In(ah)
	a = qp.Attr{
		State: qp.State(qpAttrState.Get(b)), CurState: qp.State(qpAttrCurState.Get(b)), PathMTU: qp.MTU(qpAttrPathMTU.Get(b)),
		SendPSN: qp.PSN(qpAttrSendPSN.Get(b)) & qp.PSNMask, RecvPSN: qp.PSN(qpAttrRecvPSN.Get(b)) & qp.PSNMask,
		DestNum: qp.Num(qpAttrDestNum.Get(b)), Access: access, PKeyIndex: qpAttrPKeyIndex.Get(b), Port: qpAttrPort.Get(b),
		MaxReads: qpAttrMaxReads.Get(b), MaxDestReads: qpAttrMaxDestReads.Get(b),
		RNRTimer:   cmp.Or(qp.RNRTimer(qpAttrRNRTimer.Get(b)), qp.DefaultRNRTimer),
		AckTimeout: qp.AckTimeout(qpAttrTimeout.Get(b)), RetryCount: qpAttrRetry.Get(b), RNRRetry: qpAttrRNRRetry.Get(b),
		AV: qp.AV{
			DGID: [16]byte(grhDGID.In(grh)[:16]), FlowLabel: grhFlowLabel.Get(grh), LID: ahDLID.Get(ah), SGIDIndex: grhSGIDIndex.Get(grh),
			HopLimit: grhHopLimit.Get(grh), TrafficClass: grhTrafficClass.Get(grh), SL: ahSL.Get(ah), SrcPathBits: ahSrcPathBits.Get(ah),
			StaticRate: ahStaticRate.Get(ah), Port: ahPort.Get(ah), Global: ahIsGlobal.Get(ah) != 0,
		},
	}
	return a, qp.AttrMask(qpAttrMask.Get(b)) & knownAttrs, nil
}
