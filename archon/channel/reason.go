package channel

import (
	"context"
	"errors"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/verbs"
)

// Reason says why RDMA to a replica failed. See package core for the list; its String
// is the name under which it is counted.
type Reason = core.Reason

// stepReasons are the steps whose failure is a reason of its own.
var stepReasons = map[string]Reason{
	be.StepPort: core.NoPort, be.StepLimits: core.NoDevice, be.StepDomain: core.NoDomain, be.StepMemory: core.NoMemory, be.StepCQ: core.NoCQ,
	be.StepArm: core.NoArm, be.StepConnect: core.Unreachable, be.StepQP: core.NoQP, be.StepInit: core.InitFailed,
	be.StepReceives: core.NoMemory, be.StepRTR: core.RTRFailed, be.StepRTS: core.RTSFailed,
}

// sentinels are errors that are a reason of their own, wherever they came from, the more
// telling first.
var sentinels = []struct {
	err    error
	reason Reason
}{
	{verbs.ErrDeviceLost, core.DeviceLost},
	{be.ErrGIDType, core.RoCEVersion},
	{be.ErrVersion, core.Version},
	{be.ErrEngines, core.NoCQ},
	{bemalloc.ErrLimit, core.NoMemory},
	{cq.RetryExceededError, core.RetryExceeded},
	{be.ErrPeerTimeout, core.Silent},
	{be.ErrPeerLost, core.PeerLost},
	{be.ErrPeerClosed, core.PeerClosed},
	{be.ErrRefused, core.PeerRefused},
}

// ReasonOf gives the reason for an error of a set-up or a connection over RDMA.
func ReasonOf(err error) Reason {
	if err == nil {
		return core.NoReason
	}
	if o, ok := errors.AsType[*openError](err); ok && !errors.As(err, new(*be.StepError)) {
		return o.reason
	}
	step, ok := lastStep(err)
	if ok && step.Step == be.StepOpen && !errors.Is(err, be.ErrRefused) {
		return core.OpenFailed
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.reason
		}
	}
	if errors.As(err, new(*bemalloc.RegisterError)) {
		return core.NoMemory
	}
	if errors.As(err, new(cq.Status)) {
		return core.QPFailed
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return core.TimedOut
	case ok:
		if r, ok := stepReasons[step.Step]; ok {
			return r
		}
		return core.Greeting
	case errors.Is(err, be.ErrProtocol) || errors.Is(err, archon.ErrProtocol):
		return core.ProtocolBroken
	case errors.As(err, new(*pingError)):
		return core.OpenFailed
	}
	return core.Other
}

// lastStep is the step that an error began at: one step may fail for another's failure.
func lastStep(err error) (step *be.StepError, ok bool) {
	for next := (*be.StepError)(nil); errors.As(err, &next); err = next.Err {
		step, ok = next, true
	}
	return step, ok
}

// openError is a device that could not be opened.
type openError struct {
	reason Reason
	err    error
}

func (e *openError) Error() string { return "open RDMA: " + e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// pingError is a connection that came up and then did not carry the first ping.
type pingError struct{ err error }

func (e *pingError) Error() string { return "first ping: " + e.err.Error() }
func (e *pingError) Unwrap() error { return e.err }
