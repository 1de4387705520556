package qp

import (
	"fmt"
	"strings"

	"github.com/byteexpress/byteexpress/mr"
)

// AttrMask says which fields of an [Attr] are meant. The values are those of
// enum ib_qp_attr_mask in the kernel's rdma/ib_verbs.h.
type AttrMask uint32

// One bit for each field of [Attr] that a step may set. The bits that are left out
// (Q_Key, alternate path, path migration, capacities) do not apply here.
const (
	MaskState        AttrMask = 1 << 0
	MaskCurState     AttrMask = 1 << 1
	MaskSQDNotify    AttrMask = 1 << 2
	MaskAccess       AttrMask = 1 << 3
	MaskPKeyIndex    AttrMask = 1 << 4
	MaskPort         AttrMask = 1 << 5
	MaskAV           AttrMask = 1 << 7
	MaskPathMTU      AttrMask = 1 << 8
	MaskAckTimeout   AttrMask = 1 << 9
	MaskRetryCount   AttrMask = 1 << 10
	MaskRNRRetry     AttrMask = 1 << 11
	MaskRecvPSN      AttrMask = 1 << 12
	MaskMaxReads     AttrMask = 1 << 13
	MaskRNRTimer     AttrMask = 1 << 15
	MaskSendPSN      AttrMask = 1 << 16
	MaskMaxDestReads AttrMask = 1 << 17
	MaskDestNum      AttrMask = 1 << 20
)

var maskNames = []struct {
	bit  AttrMask
	name string
}{
	{MaskState, "state"}, {MaskCurState, "current state"}, {MaskSQDNotify, "SQD notify"}, {MaskAccess, "access flags"},
	{MaskPKeyIndex, "P_Key index"}, {MaskPort, "port"}, {MaskAV, "address vector"}, {MaskPathMTU, "path MTU"},
	{MaskAckTimeout, "timeout"}, {MaskRetryCount, "retry count"}, {MaskRNRRetry, "RNR retry"}, {MaskRecvPSN, "receive PSN"},
	{MaskMaxReads, "max reads"}, {MaskRNRTimer, "RNR timer"}, {MaskSendPSN, "send PSN"}, {MaskMaxDestReads, "max destination reads"},
	{MaskDestNum, "destination QP number"},
}

// String lists the attributes by name.
func (m AttrMask) String() string {
	var parts []string
	for _, n := range maskNames {
		if m&n.bit != 0 {
			parts = append(parts, n.name)
			m &^= n.bit
		}
	}
	if m != 0 || len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("%#x", uint32(m)))
	}
	return strings.Join(parts, ", ")
}

// AV is an address vector: the path to the peer. On Ethernet (RoCE) Global must
// be set and LID is 0.
type AV struct {
	DGID         [16]byte // the peer's GID, network order
	FlowLabel    uint32   // 20 bits
	LID          uint16   // the peer's LID on InfiniBand
	SGIDIndex    uint8    // our GID, by its index in the port's table
	HopLimit     uint8
	TrafficClass uint8 // on RoCE v2: DSCP << 2 | ECN
	SL           uint8 // service level, 0..7
	SrcPathBits  uint8
	StaticRate   uint8
	Port         uint8 // the local port
	Global       bool  // use DGID
}

// Attr holds a queue pair's attributes, for Modify (with a mask) and from Query.
type Attr struct {
	State        State
	CurState     State
	PathMTU      MTU
	SendPSN      PSN // of the first packet we send
	RecvPSN      PSN // of the first packet we expect
	DestNum      Num
	Access       mr.Access // what the peer may do through this QP
	PKeyIndex    uint16
	Port         uint8
	MaxReads     uint8 // READs and atomics that we may have outstanding
	MaxDestReads uint8 // READs and atomics that the peer may have outstanding
	RNRTimer     RNRTimer
	AckTimeout   AckTimeout
	RetryCount   uint8 // 0..7
	RNRRetry     uint8 // 0..7; 7 is for ever
	AV           AV
}
