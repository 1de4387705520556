package nic

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// attrOf fills exactly what each state needs.
func attrOf(v *vnet, peer *vend, to qp.State) (qp.Attr, qp.AttrMask) {
	a := qp.Attr{State: to}
	switch to {
	case qp.Init:
		a.Port = 1
		return a, qp.MaskState | qp.MaskPKeyIndex | qp.MaskPort | qp.MaskAccess
	case qp.RTR:
		a.PathMTU, a.DestNum, a.AV = qp.MTU1024, peer.q.num, qp.AV{DGID: peer.h.gid, Global: true}
		return a, qp.MaskState | qp.MaskAV | qp.MaskPathMTU | qp.MaskDestNum | qp.MaskRecvPSN | qp.MaskMaxDestReads | qp.MaskRNRTimer
	case qp.RTS:
		return a, qp.MaskState | qp.MaskAckTimeout | qp.MaskRetryCount | qp.MaskRNRRetry | qp.MaskSendPSN | qp.MaskMaxReads
	}
	return a, qp.MaskState
}

// TestTransitions tries every state from every state.
func TestTransitions(t *testing.T) {
	legal := map[qp.State]string{qp.Reset: "0 1", qp.Init: "0 1 2 6", qp.RTR: "0 3 6", qp.RTS: "0 3 4 6", qp.SQD: "0 3 4 6", qp.Err: "0 6"}
	way := []qp.State{qp.Init, qp.RTR, qp.RTS, qp.SQD}
	for from, allowed := range legal {
		for to := qp.Reset; to <= qp.Err; to++ {
			v := newNet(t, 1)
			h := v.add(nil)
			x, y := v.end(h, 64, 8), v.end(h, 64, 8)
			do := func(to qp.State) error {
				a, m := attrOf(v, y, to)
				if from == qp.SQD && to == qp.RTS || from == qp.RTS && to == qp.RTS && x.q.state == qp.RTS {
					m = qp.MaskState
				}
				return h.nic.Modify(x.q, &a, m)
			}
			steps := way[:min(int(from), len(way))]
			if from == qp.Err {
				steps = []qp.State{qp.Init, qp.Err}
			}
			for _, s := range steps {
				a, m := attrOf(v, y, s)
				if err := h.nic.Modify(x.q, &a, m); err != nil {
					t.Fatal(err)
				}
			}
			if to == qp.Init && from == qp.Init {
				continue // needs nothing
			}
			err := do(to)
			want := strings.Contains(allowed, string(rune('0'+to)))
			if (err == nil) != want || err != nil && !errors.Is(err, qp.ErrTransition) {
				t.Errorf("%v to %v: %v, want allowed %v", from, to, err, want)
			}
			if state := x.q.Attr().State; err == nil && state != to || err != nil && state != from {
				t.Errorf("%v to %v: %v, is in %v", from, to, err, state)
			}
		}
	}
}

func TestAttributesChecked(t *testing.T) {
	v := newNet(t, 1)
	h := v.add(func(c *Config) {
		c.Ports[0].ActiveMTU = qp.MTU1024
		c.Ports[0].GIDs = append(c.Ports[0].GIDs,
			GID{GIDEntry: verbs.GIDEntry{GID: verbs.GID{0: 1}, Index: 5, Type: verbs.GIDRoCEv2}, Foreign: true})
	})
	x, y := v.end(h, 64, 8), v.end(h, 64, 8)
	a, m := attrOf(v, y, qp.Init)
	for _, c := range []struct {
		desc string
		set  func(a *qp.Attr)
		want error
		text string
	}{
		{"port 2 of 1", func(a *qp.Attr) { a.Port = 2 }, syscall.EINVAL, "port is 2, must be 1 to 1"},
		{"port 0", func(a *qp.Attr) { a.Port = 0 }, syscall.EINVAL, "port is 0"},
		{"P_Key", func(a *qp.Attr) { a.PKeyIndex = 1 }, syscall.EINVAL, "P_Key index is 1"},
		{"access", func(a *qp.Attr) { a.Access = mr.OnDemand }, syscall.EINVAL, "on-demand"},
	} {
		b := a
		c.set(&b)
		if err := h.nic.Modify(x.q, &b, m); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.desc, err, c.want, c.text)
		}
	}
	if err := h.nic.Modify(x.q, &a, m); err != nil {
		t.Fatal(err)
	}
	a, m = attrOf(v, y, qp.RTR)
	for _, c := range []struct {
		desc string
		set  func(a *qp.Attr)
		want error
		text string
	}{
		{"no MTU", func(a *qp.Attr) { a.PathMTU = 0 }, syscall.EINVAL, "path MTU"},
		{"MTU over the port's", func(a *qp.Attr) { a.PathMTU = qp.MTU2048 }, syscall.EINVAL, "is 2048, must be 256 to 1024"},
		{"QP number of 25 bits", func(a *qp.Attr) { a.DestNum = 1 << 24 }, syscall.EINVAL, "destination QP number"},
		{"PSN of 25 bits", func(a *qp.Attr) { a.RecvPSN = 1 << 24 }, syscall.EINVAL, "receive PSN"},
		{"RNR timer", func(a *qp.Attr) { a.RNRTimer = 32 }, syscall.EINVAL, "RNR timer"},
		{"reads", func(a *qp.Attr) { a.MaxDestReads = 17 }, syscall.EINVAL, "must be 0 to 16"},
		{"not global", func(a *qp.Attr) { a.AV.Global = false }, syscall.EINVAL, "AV.Global"},
		{"empty GID", func(a *qp.Attr) { a.AV.SGIDIndex = 3 }, syscall.EINVAL, "GID index 3"},
		{"foreign GID", func(a *qp.Attr) { a.AV.SGIDIndex = 5 }, syscall.ENODEV, "network namespace"},
	} {
		b := a
		c.set(&b)
		if err := h.nic.Modify(x.q, &b, m); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.desc, err, c.want, c.text)
		}
		if s := x.q.Attr().State; s != qp.Init {
			t.Fatalf("%s: now in %v", c.desc, s)
		}
	}
	if err := h.nic.Modify(x.q, &a, m); err != nil {
		t.Fatal(err)
	}
	a, m = attrOf(v, y, qp.RTS)
	for _, set := range []func(a *qp.Attr){
		func(a *qp.Attr) { a.AckTimeout = 32 }, func(a *qp.Attr) { a.RetryCount = 8 }, func(a *qp.Attr) { a.RNRRetry = 8 },
		func(a *qp.Attr) { a.MaxReads = 17 }, func(a *qp.Attr) { a.SendPSN = 1 << 24 },
	} {
		b := a
		set(&b)
		if err := h.nic.Modify(x.q, &b, m); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	a.CurState = qp.Init
	if err := h.nic.Modify(x.q, &a, m|qp.MaskCurState); !errors.Is(err, qp.ErrTransition) {
		t.Errorf("wrong current state: %v", err)
	}
}

// TestPostingByState: what may be posted when.
func TestPostingByState(t *testing.T) {
	v := newNet(t, 1)
	h := v.add(nil)
	x, y := v.end(h, 64, 64), v.end(h, 64, 8)
	for _, c := range []struct {
		to         qp.State
		send, recv error
	}{
		{qp.Reset, qp.ErrState, qp.ErrState}, {qp.Init, qp.ErrState, nil}, {qp.RTR, qp.ErrState, nil}, {qp.RTS, nil, nil}, {qp.SQD, nil, nil}, {qp.Err, nil, nil},
	} {
		a, m := attrOf(v, y, c.to)
		if err := h.nic.Modify(x.q, &a, m); err != nil {
			t.Fatal(err)
		}
		_, es := x.q.PostSend([]qp.SendWR{{Opcode: qp.Send}}, 1<<31)
		_, er := x.q.PostRecv([]qp.RecvWR{{}})
		if es != c.send || er != c.recv {
			t.Errorf("%v: send %v, receive %v; want %v, %v", c.to, es, er, c.send, c.recv)
		}
	}
}

// TestDrain: SQD lets what was started finish and holds the rest back.
func TestDrain(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 65536, nil)
	wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 30000)})
	wr.ID, wr.Flags = 1, qp.Signaled
	x.send(wr)
	n := x.h.nic
	if err := n.Modify(x.q, &qp.Attr{State: qp.SQD}, qp.MaskState|qp.MaskSQDNotify); err != nil {
		t.Fatal(err)
	}
	wr.ID = 2
	x.send(wr)
	v.idle()
	wantBrief(t, "draining", x.poll(), "1:SUCCESS")
	if types := x.h.eventTypes(); len(types) == 0 || types[len(types)-1] != "SQ_DRAINED" {
		t.Errorf("events %v", types)
	}
	if err := n.Modify(x.q, &qp.Attr{State: qp.RTS}, qp.MaskState); err != nil {
		t.Fatal(err)
	}
	x.h.run()
	v.idle()
	wantBrief(t, "going on", x.poll(), "2:SUCCESS")
}

// TestResetForgets: after RESET nothing of before is completed, and the rings are
// whole again.
func TestResetForgets(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 4096, nil)
	for i := range 64 {
		x.recv(qp.RecvWR{ID: uint64(i)})
	}
	v.filter = func(*Packet) bool { return false }
	x.send(y.remote(qp.Write, []qp.SGE{x.sge(0, 8)}))
	for _, e := range []*vend{x, y} {
		if err := e.h.nic.Modify(e.q, &qp.Attr{}, qp.MaskState); err != nil {
			t.Fatal(err)
		}
	}
	v.idle()
	v.filter = nil
	v.join(x, y)
	for i := range 64 {
		x.recv(qp.RecvWR{ID: 100 + uint64(i), SGEs: []qp.SGE{x.sge(0, 8)}})
	}
	y.send(qp.SendWR{ID: 7, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{y.sge(0, 8)}})
	v.idle()
	wantBrief(t, "receiver", x.poll(), "100:SUCCESS")
	wantBrief(t, "sender", y.poll(), "7:SUCCESS")
}
