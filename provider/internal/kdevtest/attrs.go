//go:build linux

package kdevtest

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Query: the device tells every attribute as it was set, in each state of the way up;
// but for the hop limit, which on RoCE the kernel takes from its route.
func (r *Rig) Query(t *testing.T) {
	testdev.Verb(t, "QP: query")
	p := r.Connect(t, Config{})
	query := func() qp.Attr {
		t.Helper()
		a, err := p.A.QP.Query()
		Must(t, err)
		if a.State != p.A.QP.State() {
			t.Errorf("the device says %v, software %v", a.State, p.A.QP.State())
		}
		return a
	}
	Must(t, p.A.QP.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	if a := query(); a.State != qp.Reset {
		t.Errorf("state %v, want RESET", a.State)
	}
	port, err := p.Ctx.Port(1)
	Must(t, err)
	gid := lastGID(t, p.Ctx)
	path := qp.Path{
		SGIDIndex: uint8(gid.Index), DGID: gid.GID, Global: true, DestNum: p.B.QP.Num(), Access: mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead,
		SendPSN: 0x123456, RecvPSN: 0xfedcba, MTU: min(port.ActiveMTU, qp.MTU512), MaxReads: 2, MaxDestReads: 4,
		AckTimeout: 13, RetryCount: 5, RNRRetry: 6, RNRTimer: 9, TrafficClass: 104,
	}
	type view struct {
		State              qp.State
		Access             mr.Access
		Port               uint8
		MTU                qp.MTU
		RecvPSN            qp.PSN
		DestNum            qp.Num
		DestReads          uint8
		RNRTimer           qp.RNRTimer
		DGID               [16]byte
		SGIDIndex          uint8
		Global             bool
		Class              uint8
		SendPSN            qp.PSN
		Reads              uint8
		AckTimeout         qp.AckTimeout
		RetryCount, RNRTry uint8
	}
	see := func() (v view) {
		t.Helper()
		a := query()
		v = view{State: a.State, Access: a.Access &^ mr.LocalWrite, Port: a.Port}
		if a.State == qp.Init {
			return v
		}
		v.MTU, v.RecvPSN, v.DestNum, v.DestReads, v.RNRTimer = a.PathMTU, a.RecvPSN, a.DestNum, a.MaxDestReads, a.RNRTimer
		v.DGID, v.SGIDIndex, v.Global, v.Class = a.AV.DGID, a.AV.SGIDIndex, a.AV.Global, a.AV.TrafficClass
		if a.State == qp.RTR {
			return v
		}
		v.SendPSN, v.Reads, v.AckTimeout, v.RetryCount, v.RNRTry = a.SendPSN, a.MaxReads, a.AckTimeout, a.RetryCount, a.RNRRetry
		return v
	}
	want := view{State: qp.Init, Access: path.Access &^ mr.LocalWrite, Port: 1}
	compare := func() {
		t.Helper()
		if got := see(); got != want {
			t.Errorf("attributes are\n%+v, want\n%+v", got, want)
		}
	}
	Must(t, path.ToInit(p.A.QP))
	compare()
	Must(t, path.ToRTR(p.A.QP))
	want.State, want.MTU, want.RecvPSN, want.DestNum, want.DestReads, want.RNRTimer = qp.RTR, path.MTU, path.RecvPSN, path.DestNum, 4, 9
	want.DGID, want.SGIDIndex, want.Global, want.Class = path.DGID, path.SGIDIndex, true, 104
	compare()
	Must(t, path.ToRTS(p.A.QP))
	want.State, want.SendPSN, want.Reads, want.AckTimeout, want.RetryCount, want.RNRTry = qp.RTS, path.SendPSN, 2, 13, 5, 6
	compare()
	Must(t, p.A.QP.Modify(&qp.Attr{State: qp.RTS, RNRTimer: 11, Access: mr.LocalWrite | mr.RemoteRead}, qp.MaskRNRTimer|qp.MaskAccess|qp.MaskState))
	want.RNRTimer, want.Access = 11, mr.RemoteRead
	compare()
	Must(t, p.A.QP.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	if a := query(); a.State != qp.Err {
		t.Errorf("state %v, want ERR", a.State)
	}
}

// ModifyRefused: a transition that is not allowed, or lacks an attribute, or has a
// value out of range, is refused and changes nothing.
func (r *Rig) ModifyRefused(t *testing.T) {
	testdev.Verb(t, "QP: modify")
	p := r.Connect(t, Config{})
	for what, m := range map[string]struct {
		a    qp.Attr
		mask qp.AttrMask
	}{
		"RTS to INIT":     {qp.Attr{State: qp.Init}, qp.MaskState},
		"RTS to RTR":      {qp.Attr{State: qp.RTR}, qp.MaskState},
		"MTU in RTS":      {qp.Attr{State: qp.RTS, PathMTU: qp.MTU256}, qp.MaskState | qp.MaskPathMTU},
		"peer in RTS":     {qp.Attr{State: qp.RTS, DestNum: 5}, qp.MaskState | qp.MaskDestNum},
		"unknown state":   {qp.Attr{State: 77}, qp.MaskState},
		"ERR with access": {qp.Attr{State: qp.Err, Access: mr.RemoteRead}, qp.MaskState | qp.MaskAccess},
	} {
		if err := p.A.QP.Modify(&m.a, m.mask); !errors.Is(err, qp.ErrTransition) || p.A.QP.State() != qp.RTS {
			t.Errorf("%s: %v, state %v", what, err, p.A.QP.State())
		}
	}
	// It works as before.
	p.B.Recv(t, 1, p.B.SGE(0, 8))
	p.A.Send(t, qp.SendWR{ID: 2, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}})
	p.A.Want(t, cq.Completion{ID: 2, Opcode: cq.Send})

	fresh, err := p.PD.CreateQP(verbs.QPConfig{SendCQ: p.A.CQ, RecvCQ: p.A.CQ, Caps: qp.Caps{SendWR: 1, RecvWR: 1}})
	Must(t, err)
	CloseLater(t, fresh)
	noSuch := qp.Path{Port: 77}
	if err := noSuch.ToInit(fresh); err == nil || fresh.State() != qp.Reset {
		t.Errorf("port 77: %v, state %v", err, fresh.State())
	}
	path := qp.Path{SGIDIndex: 250, Global: true, MTU: qp.MTU256}
	Must(t, path.ToInit(fresh))
	if err := path.ToRTR(fresh); err == nil || fresh.State() != qp.Init {
		t.Errorf("GID index 250: %v, state %v", err, fresh.State())
	}
}

// Drain: a queue pair in SQD finishes what it began, says so, and goes on in RTS.
func (r *Rig) Drain(t *testing.T) {
	testdev.Verb(t, "QP: drain")
	p := r.Connect(t, Config{})
	send := func(id uint64) {
		p.B.Recv(t, id, p.B.SGE(0, 8))
		p.A.Send(t, qp.SendWR{ID: id, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}})
	}
	send(1)
	p.A.Want(t, cq.Completion{ID: 1, Opcode: cq.Send})
	Must(t, p.A.QP.Modify(&qp.Attr{State: qp.SQD}, qp.MaskState|qp.MaskSQDNotify))
	if e := event(t, p.Ctx, verbs.EventSQDrained); e.QP != p.A.QP.Num() {
		t.Errorf("event %v, want queue pair %#x", e, uint32(p.A.QP.Num()))
	}
	if a, err := p.A.QP.Query(); err != nil || a.State != qp.SQD {
		t.Errorf("state %v, %v", a.State, err)
	}
	send(2) // waits
	p.A.Empty(t)
	Must(t, p.A.QP.Modify(&qp.Attr{State: qp.RTS}, qp.MaskState))
	p.A.Want(t, cq.Completion{ID: 2, Opcode: cq.Send})
}
