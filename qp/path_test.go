package qp

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/byteexpress/byteexpress/mr"
)

// recorder is a queue pair that keeps its state and what Modify was given. It
// refuses what is not legal, and the step failAt.
type recorder struct {
	QP
	state  State
	attrs  []Attr
	failAt State
}

var errRefused = errors.New("device says no")

func (r *recorder) Modify(a *Attr, mask AttrMask) error {
	if err := CheckTransition(r.state, a.State, mask); err != nil {
		return err
	}
	if a.State == r.failAt {
		return errRefused
	}
	r.state = a.State
	r.attrs = append(r.attrs, *a)
	return nil
}

func TestConnect(t *testing.T) {
	p := Path{
		Port: 2, PKeyIndex: 3, SGIDIndex: 4, Access: mr.RemoteWrite | mr.LocalWrite, SendPSN: 0x5_123456,
		DestNum: 6, RecvPSN: 0x7_654321, DGID: [16]byte{15: 8}, LID: 9, Global: true,
		MTU: MTU1024, MaxReads: 10, MaxDestReads: 11,
		AckTimeout: 12, RetryCount: 1, RNRRetry: 2, RNRTimer: 13, HopLimit: 14, TrafficClass: 15, SL: 3, FlowLabel: 16,
	}
	q := recorder{failAt: 255}
	if err := p.Connect(&q); err != nil || q.state != RTS {
		t.Fatalf("Connect: %v, state %v", err, q.state)
	}
	want := []Attr{
		{State: Init, PKeyIndex: 3, Port: 2, Access: mr.RemoteWrite | mr.LocalWrite},
		{State: RTR, PathMTU: MTU1024, DestNum: 6, RecvPSN: 0x654321, MaxDestReads: 11, RNRTimer: 13, AV: AV{
			DGID: [16]byte{15: 8}, FlowLabel: 16, LID: 9, SGIDIndex: 4, HopLimit: 14, TrafficClass: 15, SL: 3, Port: 2, Global: true}},
		{State: RTS, SendPSN: 0x123456, MaxReads: 10, AckTimeout: 12, RetryCount: 1, RNRRetry: 2},
	}
	if d := cmp.Diff(want, q.attrs); d != "" {
		t.Errorf("attributes (-want +got):\n%s", d)
	}
}

func TestConnectDefaults(t *testing.T) {
	q := recorder{failAt: 255}
	if err := (&Path{MTU: MTU4096}).Connect(&q); err != nil {
		t.Fatal(err)
	}
	if q.attrs[0].Port != 1 || q.attrs[1].AV.Port != 1 || q.attrs[1].AV.HopLimit != 64 || q.attrs[1].RNRTimer != 12 {
		t.Errorf("defaults: %+v", q.attrs[:2])
	}
	if d := cmp.Diff(Attr{State: RTS, AckTimeout: 14, RetryCount: 7, RNRRetry: 7}, q.attrs[2]); d != "" {
		t.Errorf("defaults of RTS (-want +got):\n%s", d)
	}

	q = recorder{failAt: 255}
	if err := (&Path{MTU: MTU4096, NoRetry: true, NoRNRRetry: true, RetryCount: 3, RNRRetry: 3}).Connect(&q); err != nil {
		t.Fatal(err)
	}
	if a := q.attrs[2]; a.RetryCount != 0 || a.RNRRetry != 0 {
		t.Errorf("no retry asked for, got %d and %d", a.RetryCount, a.RNRRetry)
	}
}

// An error names the step, keeps its cause, and ends the bring-up there.
func TestConnectErrors(t *testing.T) {
	for step, name := range map[State]string{Init: "RESET to INIT", RTR: "INIT to RTR", RTS: "RTR to RTS"} {
		q := recorder{failAt: step}
		err := (&Path{MTU: MTU256}).Connect(&q)
		if !errors.Is(err, errRefused) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("step to %v: error %v", step, err)
		}
		if q.state != step-1 {
			t.Errorf("step to %v failed: state %v", step, q.state)
		}
	}
	q := recorder{state: RTS, failAt: 255}
	if err := (&Path{MTU: MTU256}).Connect(&q); !errors.Is(err, ErrTransition) {
		t.Errorf("a queue pair that is connected already: %v", err)
	}
}
