//go:build linux

package uverbs

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// System is the kernel as this package sees it. The zero value is the one that
// runs; tests give other roots and stand-ins. A System may be used by several
// goroutines and must not change while in use.
type System struct {
	SysRoot string // instead of /sys
	DevRoot string // instead of /dev

	// OpenNode opens a device node and gives the descriptor and its device number
	// (st_rdev); nil is the kernel's. It reports an errno.
	OpenNode func(path string) (fd int, rdev uint64, err error)
	// CloseNode closes a descriptor that OpenNode gave; nil is the kernel's.
	CloseNode func(fd int) error
	// Ioctl makes the request in the command page; nil is the kernel's. Decode
	// reads such a page.
	Ioctl func(fd int, page []byte) syscall.Errno
	// Netlink answers one RDMA netlink request with the messages of the reply;
	// nil is the kernel's, or none when SysRoot is set.
	Netlink func(request []byte) ([][]byte, error)
	// Interfaces gives the names of this network namespace's interfaces by index,
	// or an error if they cannot be listed; nil is the kernel's.
	Interfaces func() (map[int]string, error)
	// Release is the kernel's release; "" is the one that runs.
	Release string
}

func (s *System) sysRoot() string {
	if s.SysRoot != "" {
		return s.SysRoot
	}
	return "/sys"
}

func (s *System) devRoot() string {
	if s.DevRoot != "" {
		return s.DevRoot
	}
	return "/dev"
}

func (s *System) open(path string) (int, uint64, error) {
	if s.OpenNode != nil {
		return s.OpenNode(path)
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		unix.Close(fd)
		return -1, 0, unix.ENODEV
	}
	return fd, uint64(st.Rdev), nil
}

func (s *System) close(fd int) error {
	if s.CloseNode != nil {
		return s.CloseNode(fd)
	}
	return unix.Close(fd)
}

func (s *System) ioctl(fd int, page []byte) syscall.Errno {
	if s.Ioctl != nil {
		return s.Ioctl(fd, page)
	}
	return ioctl(fd, page)
}

// netlink gives the function that answers netlink requests, nil if there is none,
// and what to call afterwards.
func (s *System) netlink() (ask func([]byte) ([][]byte, error), done func()) {
	if s.Netlink != nil {
		return s.Netlink, func() {}
	}
	if s.SysRoot != "" {
		return nil, func() {}
	}
	conn, err := dialNetlink()
	if err != nil {
		return nil, func() {}
	}
	return conn.ask, conn.close
}

// interfaces gives the names of this namespace's network interfaces by index, nil
// if they cannot be listed.
func (s *System) interfaces() map[int]string {
	if s.Interfaces != nil {
		names, err := s.Interfaces()
		if err != nil {
			return nil
		}
		return names
	}
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	names := make(map[int]string, len(list))
	for _, i := range list {
		names[i.Index] = i.Name
	}
	return names
}

// release is the running kernel, as "kernel 6.1.0-50-amd64".
func (s *System) release() string {
	if s.Release != "" {
		return "kernel " + s.Release
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "this kernel"
	}
	return "kernel " + unix.ByteSliceToString(u.Release[:])
}

// memlock is the soft limit of locked memory in bytes.
func memlock() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) != nil {
		return unix.RLIM_INFINITY
	}
	return l.Cur
}
