package qp

import (
	"fmt"
	"syscall"
)

// ValueError is an attribute whose value no device can have. It wraps EINVAL, which is
// all that a kernel says of it.
type ValueError struct {
	What      string // "retry count"
	Value     int
	Low, High int // both included
}

// Error names the attribute, its value and its limits.
func (e *ValueError) Error() string {
	return fmt.Sprintf("%s is %d, must be %d to %d", e.What, e.Value, e.Low, e.High)
}

// Unwrap gives EINVAL.
func (e *ValueError) Unwrap() error { return syscall.EINVAL }

// CheckValues reports whether the attributes that the mask names have values that their
// encodings allow (the fields' widths in IBTA 1.4, 9.2 and 9.7, and tables 45 and 95).
// What a port or a device allows may be less. The error is a [ValueError].
func (a *Attr) CheckValues(mask AttrMask) error {
	for _, c := range []struct {
		bit       AttrMask
		what      string
		v         int
		low, high int
	}{
		{MaskPort, "port", int(a.Port), 1, 255},
		{MaskPathMTU, "path MTU in bytes", a.PathMTU.Bytes(), MTU256.Bytes(), MTU4096.Bytes()},
		{MaskDestNum, "destination QP number", int(a.DestNum), 0, 1<<24 - 1},
		{MaskSendPSN, "send PSN", int(a.SendPSN), 0, int(PSNMask)},
		{MaskRecvPSN, "receive PSN", int(a.RecvPSN), 0, int(PSNMask)},
		{MaskRNRTimer, "RNR timer", int(a.RNRTimer), 0, 31},
		{MaskAckTimeout, "timeout", int(a.AckTimeout), 0, 31},
		{MaskRetryCount, "retry count", int(a.RetryCount), 0, 7},
		{MaskRNRRetry, "RNR retry", int(a.RNRRetry), 0, 7},
		{MaskAV, "service level", int(a.AV.SL), 0, 15},
		{MaskAV, "flow label", int(a.AV.FlowLabel), 0, 1<<20 - 1},
		{MaskAV, "source path bits", int(a.AV.SrcPathBits), 0, 127},
	} {
		if mask&c.bit != 0 && (c.v < c.low || c.v > c.high) {
			return &ValueError{c.what, c.v, c.low, c.high}
		}
	}
	return nil
}
