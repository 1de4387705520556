//go:build linux

package main

import (
	"os"
	"strings"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// logTail is how much of the end of the kernel's log a report carries, in bytes.
const logTail = 8 << 10

// mountAll mounts the file systems that the items expect of any Linux.
func mountAll() error {
	for _, m := range []struct{ kind, dir string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"tmpfs", "/dev/shm"}, {"tmpfs", "/run"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, ""); err != nil {
			return errors.Wrapf(err, "mount %s on %s", m.kind, m.dir)
		}
	}
	return os.MkdirAll("/root", 0o700)
}

// load loads one kernel module. One that is already there is fine.
func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.EEXIST {
		return errors.Wrapf(err, "load module %s", path)
	}
	return nil
}

// limits lifts the limits that RDMA programs run into: pinned memory and files.
func limits() error {
	const files = 1 << 16
	for what, l := range map[int]unix.Rlimit{
		unix.RLIMIT_MEMLOCK: {Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY},
		unix.RLIMIT_NOFILE:  {Cur: files, Max: files},
	} {
		if err := unix.Setrlimit(what, &l); err != nil {
			return errors.Wrapf(err, "resource limit %d", what)
		}
	}
	return nil
}

// killAll ends what an item left running, so that the next one starts alone.
func killAll() {
	unix.Kill(-1, unix.SIGKILL)
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && err != unix.EINTR {
			return
		}
	}
}

// kernelLog gives the end of the kernel's log.
func kernelLog() string {
	buf := make([]byte, 1<<18)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, buf)
	if err != nil {
		return "kernel log: " + err.Error()
	}
	return strings.ToValidUTF8(string(buf[max(0, n-logTail):n]), "?")
}

func tainted() string {
	b, _ := os.ReadFile("/proc/sys/kernel/tainted")
	return strings.TrimSpace(string(b))
}

func kernelVersion() string {
	b, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(b))
}
