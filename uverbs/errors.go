//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/verbs"
)

// fail makes the error of a request: which device, what was tried on which object,
// the limit that was hit, and what to do.
func (c *Context) fail(m *method, object string, err error) error {
	e := &verbs.OpError{Op: m.op, Device: c.dev.Name, Object: object, Err: err}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return e
	}
	switch errno {
	case unix.EIO:
		e.Err = fmt.Errorf("%w (%w)", verbs.ErrDeviceLost, err)
		e.Remedy = "close everything of it, and open it anew when it is back"
	case unix.ENOTTY, unix.EPROTONOSUPPORT, unix.EOPNOTSUPP:
		e.Remedy, e.Err = c.missing(m, errno)
	case unix.ENOMEM:
		if m.pins {
			e.Err = fmt.Errorf("%w (RLIMIT_MEMLOCK is %s)", err, limit(memlock()))
			e.Remedy = "raise the limit of locked memory with `ulimit -l`, a container's with `--ulimit memlock=-1`, or grant CAP_IPC_LOCK"
		} else {
			e.Remedy = "the kernel is out of memory: free some, or ask for less"
		}
	case unix.EAGAIN:
		e.Remedy = "the rdma cgroup's limit is reached (rdma.max): raise it, or close unused objects"
	case unix.EBUSY:
		e.Remedy = "close what uses it first: memory windows, then queue pairs, shared receive queues, completion queues, memory regions, protection domains"
	case unix.EMFILE, unix.ENFILE:
		e.Remedy = "raise the limit of open files (RLIMIT_NOFILE, `ulimit -n`)"
	case unix.EACCES, unix.EPERM:
		e.Remedy = "the process may not: check its capabilities and the container's device rules"
	case unix.ENODEV, unix.ENOENT:
		e.Remedy = "the device, or a GID of it, is gone from this network namespace: list devices and GIDs again"
	case unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.ENETUNREACH:
		e.Remedy = "the peer's address cannot be resolved from this GID: check the route, and that both GIDs are of the same kind"
	case unix.ENOSPC, unix.EMSGSIZE:
		e.Remedy = "the device is out of such objects, or the kernel's ABI differs: close unused objects"
	case unix.EINVAL:
		e.Remedy = "check what was asked against the device's limits, and that the object is of this context and open"
	case unix.EFAULT:
		e.Remedy = "the memory is not mapped, or not writable as the access flags demand"
	case unix.EBADF:
		e.Err = fmt.Errorf("%w (%w)", verbs.ErrClosed, err)
	}
	return e
}

// missing tells a kernel that is too old for a request from a driver that does not
// have it. A kernel says EPROTONOSUPPORT also for a request that it knows and its
// driver lacks; then its release tells.
func (c *Context) missing(m *method, errno syscall.Errno) (remedy string, err error) {
	kernel := c.sys.release()
	u := &verbs.UnsupportedError{Feature: m.op, Missing: kernel, Since: m.since}
	remedy = "use a newer kernel"
	switch driver := m.driver[c.driver]; {
	case errno == unix.ENOTTY:
		u.Feature, u.Since = "verbs by ioctl", "kernel 5.0"
	case errno == unix.EPROTONOSUPPORT && older(kernel, m.since):
	case driver != "" && older(kernel, driver):
		u.Missing, u.Since = fmt.Sprintf("the driver %s of %s", c.dev.Kernel, kernel), driver
	default:
		u.Missing, u.Since = fmt.Sprintf("the driver %s of %s", c.dev.Kernel, kernel), ""
		remedy = "use a device whose driver has it"
	}
	return remedy, fmt.Errorf("%w (%w)", u, errno)
}

// older reports that a kernel's release ("kernel 6.1.0-50-amd64") is before another
// ("kernel 6.5"). One that cannot be read counts as older.
func older(kernel, than string) bool {
	var a, b [2]int
	if n, _ := fmt.Sscanf(kernel, "kernel %d.%d", &a[0], &a[1]); n != 2 {
		return true
	}
	fmt.Sscanf(than, "kernel %d.%d", &b[0], &b[1])
	return slices.Compare(a[:], b[:]) < 0
}

func limit(bytes uint64) string {
	if bytes == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// openError explains why a device node cannot be opened.
func openError(d Device, err error) error {
	e := &verbs.OpError{Op: "open", Device: d.Name, Object: d.Path, Err: err}
	switch {
	case errors.Is(err, os.ErrNotExist):
		e.Err = fmt.Errorf("no device node (%w)", err)
		e.Remedy = "load the kernel module ib_uverbs; in a container, pass the node in with `--device " + d.Path + "`"
	case errors.Is(err, os.ErrPermission):
		e.Err = fmt.Errorf("permission denied (%w)", err)
		e.Remedy = "let the user read and write the node (`chmod 666` or a udev rule); in a container, also allow the device in its cgroup (`--device`)"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		e.Remedy = "raise the limit of open files (RLIMIT_NOFILE, `ulimit -n`)"
	case errors.Is(err, unix.EIO), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		e.Err = fmt.Errorf("%w (%w)", verbs.ErrDeviceLost, err)
		e.Remedy = "list the devices again"
	}
	return e
}
