package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"github.com/byteexpress/byteexpress/verbs"
)

// device names the connection manager in errors.
const device = "rdma_cm"

// fail makes the error of a step: what was tried on which addresses, why not, and what
// to do.
func fail(op, object string, err error) error {
	if errors.Is(err, verbs.ErrClosed) || errors.Is(err, verbs.ErrDeviceLost) {
		return &verbs.OpError{Op: op, Device: device, Object: object, Err: err}
	}
	e := &verbs.OpError{Op: op, Device: device, Object: object, Err: err}
	var errno syscall.Errno
	var reason Reason
	switch {
	case errors.As(err, &reason):
		e.Remedy = reason.remedy()
	case errors.As(err, &errno):
		e.Remedy, e.Err = explain(op, err, errno)
	case errors.Is(err, ErrAddrChanged):
		e.Remedy = "connect anew"
	case errors.Is(err, context.DeadlineExceeded):
		e.Remedy = "check that the peer is up and reachable on its RDMA interface, or wait longer"
	}
	return e
}

// about names the address in an error that names none.
func about(err error, addr netip.AddrPort) error {
	var op *verbs.OpError
	if errors.As(err, &op) && op.Object == "" {
		op.Object = addr.String()
	}
	return err
}

// explain adds to an errno what it means here, and gives a remedy.
func explain(op string, err error, errno syscall.Errno) (remedy string, _ error) {
	switch errno {
	case syscall.EADDRINUSE:
		return "another listener or connection has the port: take another one, or close the other", err
	case syscall.EADDRNOTAVAIL:
		return "no interface of this host has the address", err
	case syscall.ENODEV:
		return "the address is not on an interface with an active RDMA device: take one that is, or add a device (`rdma link`)", err
	case syscall.EACCES, syscall.EPERM:
		return "a port below 1024 needs CAP_NET_BIND_SERVICE, and a channel is only for the user who opened it", err
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH:
		return "there is no route to the peer, or it does not answer: check its address", err
	case syscall.ETIMEDOUT:
		return "the peer does not answer: check that it is up and reachable on its RDMA interface", err
	case syscall.ECONNREFUSED, syscall.ECONNRESET:
		return "start the peer, and check address and port", err
	case syscall.EINVAL:
		return "not possible in this state, or the peer went away meanwhile: begin with a new id", err
	case syscall.ENOTCONN:
		return "the connection is not established, or no longer", err
	case syscall.ENOMEM:
		return "the kernel is out of memory: free some, or have fewer connections", err
	case syscall.ENOSPC, syscall.ENODATA:
		return "the kernel's ABI differs: use another kernel", err
	case syscall.ENOSYS:
		return "use a newer kernel", fmt.Errorf("%w (%w)", &verbs.UnsupportedError{Feature: op, Missing: "this kernel"}, err)
	case syscall.EIO, syscall.ENXIO:
		return "close the id, and begin anew when the device is back", fmt.Errorf("%w (%w)", verbs.ErrDeviceLost, err)
	case syscall.ENOENT, syscall.EBADF:
		return "", fmt.Errorf("%w (%w)", verbs.ErrClosed, err)
	}
	return "", err
}

// openError explains why the device node cannot be opened.
func openError(path string, err error) error {
	if errors.Is(err, verbs.ErrUnsupported) {
		return err
	}
	e := &verbs.OpError{Op: "open", Device: device, Object: path, Err: err}
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		e.Err = fmt.Errorf("%w (%w)", &verbs.UnsupportedError{Feature: "RDMA CM", Missing: "this system, which has no " + path}, err)
		e.Remedy = "load the kernel module, `modprobe rdma_ucm`; in a container, pass the node in with `--device " + path + "`"
	case errors.Is(err, os.ErrPermission):
		e.Remedy = "let the user read and write the node (`chmod 666` or a udev rule); in a container, also allow the device in its cgroup (`--device`)"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Remedy = "raise the limit of open files (RLIMIT_NOFILE, `ulimit -n`)"
	}
	return e
}
