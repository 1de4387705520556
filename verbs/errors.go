package verbs

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrDeviceLost is wrapped by every error of a device that was removed while
	// open. Close everything of it; open it anew when it is back.
	ErrDeviceLost = errors.New("RDMA device was removed")
	// ErrClosed is wrapped by errors about an object that was closed; those of queues
	// wrap qp.ErrClosed and cq.ErrClosed.
	ErrClosed = errors.New("object is closed")
	// ErrNotFound is wrapped when no device has the asked-for name.
	ErrNotFound = errors.New("no such RDMA device")
	// ErrUnsupported is wrapped by every UnsupportedError.
	ErrUnsupported = errors.New("not supported")
	// ErrLimit is wrapped when a request is beyond a device's limit.
	ErrLimit = errors.New("beyond the device's limit")
)

// UnsupportedError says that this kernel, device or system lacks a feature, and
// since when there is one.
type UnsupportedError struct {
	Feature string // "dmabuf memory regions"
	Missing string // who lacks it: "kernel 5.10", "rxe", "windows"
	Since   string // first version that has it, if known: "kernel 5.12"
}

// Error names the feature, who lacks it and since when it is there.
func (e *UnsupportedError) Error() string {
	s := fmt.Sprintf("%s: not supported by %s", e.Feature, e.Missing)
	if e.Since != "" {
		s += " (needs " + e.Since + " or later)"
	}
	return s
}

// Unwrap gives ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return ErrUnsupported }

// OpError is a failed operation on a device: what was tried, on which object,
// why it failed, and what to do.
type OpError struct {
	Op     string // "register memory"
	Device string // "rxe0"
	Object string // "4194304 bytes at 0x7f..." ; may be empty
	Err    error
	Remedy string // may be empty
}

// Error gives "device: op object: cause: remedy".
func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(e.Device, ":") + ": " + e.Op) // the simulator's name is "sim:"
	if e.Object != "" {
		b.WriteString(" " + e.Object)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Remedy != "" {
		b.WriteString(": " + e.Remedy)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *OpError) Unwrap() error { return e.Err }
