package qp

import (
	"cmp"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/mr"
)

// Defaults of a [Path] for a field left 0 (verbs practice; rdma-core's examples
// and perftest use the same).
const (
	DefaultAckTimeout AckTimeout = 14 // 67 ms
	DefaultRetryCount            = 7
	DefaultRNRRetry              = 7  // for ever
	DefaultRNRTimer   RNRTimer   = 12 // 0.64 ms
	DefaultHopLimit              = 64
)

// Path holds all that is needed to bring one end of a connection up. Fill in
// the local part, learn the remote part from the peer, and call the three steps
// in order, or Connect for all of them.
type Path struct {
	// Local side.
	Port      uint8 // 0: port 1
	PKeyIndex uint16
	SGIDIndex uint8     // index of our GID in the port's table
	Access    mr.Access // what the peer may do through the queue pair
	SendPSN   PSN       // our first PSN; random is best

	// Remote side.
	DestNum Num
	RecvPSN PSN // the peer's first PSN
	DGID    [16]byte
	LID     uint16 // InfiniBand without GRH
	Global  bool   // address by GID; always on RoCE

	// Agreed on: the minimum of both sides.
	MTU          MTU
	MaxReads     uint8 // READs and atomics outstanding from us; 0: none can be posted
	MaxDestReads uint8 // and from the peer

	// Path quality; 0 takes the default. NoRNRRetry and NoRetry ask for no retry. To
	// wait for an acknowledgement for ever, or for the longest RNR timer, both
	// encoded as 0, call Modify yourself.
	AckTimeout   AckTimeout
	RetryCount   uint8
	RNRRetry     uint8
	NoRetry      bool
	NoRNRRetry   bool
	RNRTimer     RNRTimer
	HopLimit     uint8
	TrafficClass uint8
	SL           uint8
	FlowLabel    uint32
}

// ToInit takes a queue pair from RESET to INIT: from then on receives can be
// posted.
func (p *Path) ToInit(q QP) error {
	a := Attr{State: Init, PKeyIndex: p.PKeyIndex, Port: p.port(), Access: p.Access}
	return errors.Wrap(q.Modify(&a, MaskState|MaskPKeyIndex|MaskPort|MaskAccess), "RESET to INIT")
}

// ToRTR takes a queue pair from INIT to RTR: from then on packets of the peer
// are taken.
func (p *Path) ToRTR(q QP) error {
	a := Attr{
		State: RTR, PathMTU: p.MTU, DestNum: p.DestNum, RecvPSN: p.RecvPSN & PSNMask, MaxDestReads: p.MaxDestReads,
		RNRTimer: cmp.Or(p.RNRTimer, DefaultRNRTimer),
		AV: AV{
			DGID: p.DGID, FlowLabel: p.FlowLabel, LID: p.LID, SGIDIndex: p.SGIDIndex, HopLimit: cmp.Or(p.HopLimit, DefaultHopLimit),
			TrafficClass: p.TrafficClass, SL: p.SL, Port: p.port(), Global: p.Global,
		},
	}
	return errors.Wrap(q.Modify(&a, MaskState|MaskAV|MaskPathMTU|MaskDestNum|MaskRecvPSN|MaskMaxDestReads|MaskRNRTimer), "INIT to RTR")
}

// ToRTS takes a queue pair from RTR to RTS: from then on sends can be posted.
func (p *Path) ToRTS(q QP) error {
	a := Attr{
		State: RTS, SendPSN: p.SendPSN & PSNMask, MaxReads: p.MaxReads, AckTimeout: cmp.Or(p.AckTimeout, DefaultAckTimeout),
		RetryCount: cmp.Or(p.RetryCount, DefaultRetryCount), RNRRetry: cmp.Or(p.RNRRetry, DefaultRNRRetry),
	}
	if p.NoRetry {
		a.RetryCount = 0
	}
	if p.NoRNRRetry {
		a.RNRRetry = 0
	}
	return errors.Wrap(q.Modify(&a, MaskState|MaskAckTimeout|MaskRetryCount|MaskRNRRetry|MaskSendPSN|MaskMaxReads), "RTR to RTS")
}

// Connect takes a queue pair from RESET to RTS.
func (p *Path) Connect(q QP) error {
	for _, step := range []func(QP) error{p.ToInit, p.ToRTR, p.ToRTS} {
		if err := step(q); err != nil {
			return err
		}
	}
	return nil
}

func (p *Path) port() uint8 { return cmp.Or(p.Port, 1) }
