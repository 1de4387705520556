package qp

import "fmt"

// State is a queue pair's state. The values are those of enum ib_qp_state.
type State uint8

// The states of a queue pair, with what each newly allows.
const (
	Reset State = 0
	Init  State = 1 // receives may be posted
	RTR   State = 2 // ready to receive: packets are taken
	RTS   State = 3 // ready to send
	SQD   State = 4 // send queue draining
	SQE   State = 5 // send queue error (not reached by RC)
	Err   State = 6 // everything posted is flushed
)

// String is the state's standard name.
func (s State) String() string {
	switch s {
	case Reset:
		return "RESET"
	case Init:
		return "INIT"
	case RTR:
		return "RTR"
	case RTS:
		return "RTS"
	case SQD:
		return "SQD"
	case SQE:
		return "SQE"
	case Err:
		return "ERR"
	}
	return fmt.Sprintf("STATE_%d", uint8(s))
}

// transition holds the attributes that must and may be set in one step of an RC
// queue pair (IBTA 1.4, table 95; qp_state_table in the kernel's
// drivers/infiniband/core/verbs.c).
type transition struct {
	from, to      State
	must, allowed AttrMask
}

var transitions = []transition{
	{Reset, Init, MaskState | MaskPKeyIndex | MaskPort | MaskAccess, 0},
	{Init, Init, MaskState, MaskPKeyIndex | MaskPort | MaskAccess},
	{Init, RTR, MaskState | MaskAV | MaskPathMTU | MaskDestNum | MaskRecvPSN | MaskMaxDestReads | MaskRNRTimer, MaskAccess | MaskPKeyIndex},
	{RTR, RTS, MaskState | MaskAckTimeout | MaskRetryCount | MaskRNRRetry | MaskSendPSN | MaskMaxReads, MaskAccess | MaskRNRTimer | MaskCurState},
	{RTS, RTS, MaskState, MaskAccess | MaskRNRTimer | MaskCurState},
	{RTS, SQD, MaskState, MaskSQDNotify},
	{SQD, RTS, MaskState, MaskAccess | MaskRNRTimer | MaskCurState},
	{SQD, SQD, MaskState, MaskPKeyIndex | MaskPort | MaskAccess | MaskRNRTimer | MaskAV | MaskAckTimeout | MaskRetryCount | MaskRNRRetry | MaskMaxReads | MaskMaxDestReads},
}

// find gives the transition from one state to another. RESET can be reached from
// every state, ERR from every state but RESET, and neither takes attributes.
func find(from, to State) (transition, bool) {
	if from <= Err && (to == Reset || to == Err && from != Reset) {
		return transition{from, to, MaskState, 0}, true
	}
	for _, t := range transitions {
		if t.from == from && t.to == to {
			return t, true
		}
	}
	return transition{}, false
}

// CheckTransition reports whether an RC queue pair may go from one state to
// another with exactly these attributes. The error wraps [ErrTransition] and names
// both states and the attributes that are missing or not allowed.
//
// It is as strict as the kernel: a queue pair in RESET cannot go to ERR. It has
// nothing to flush; close it.
func CheckTransition(from, to State, mask AttrMask) error {
	t, ok := find(from, to)
	if !ok {
		return fmt.Errorf("%w: an RC queue pair cannot go from %v to %v", ErrTransition, from, to)
	}
	if missing := t.must &^ mask; missing != 0 {
		return fmt.Errorf("%w: %v to %v: attributes missing: %v", ErrTransition, from, to, missing)
	}
	if extra := mask &^ (t.must | t.allowed); extra != 0 {
		return fmt.Errorf("%w: %v to %v: attributes not allowed: %v", ErrTransition, from, to, extra)
	}
	return nil
}
