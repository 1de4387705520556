package rdmacm

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func openNode(path string) (int, error) {
	return unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// write makes a command. The kernel takes all of it or none.
func write(fd int, cmd []byte) syscall.Errno {
	for {
		n, err := unix.Write(fd, cmd)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err.(syscall.Errno)
		case n != len(cmd):
			return unix.ENODATA
		default:
			return 0
		}
	}
}
