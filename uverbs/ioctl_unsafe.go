//go:build linux

package uverbs

import (
	"syscall"
	"unsafe"
)

// ioctl makes the request in page, which is memory from mmap. Requests may sleep,
// and on older kernels a doorbell does the driver's work in this call: the
// scheduler is told (Syscall, not RawSyscall).
func ioctl(fd int, page []byte) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), ioctlRequest, uintptr(unsafe.Pointer(unsafe.SliceData(page))))
	return errno
}

// writeCommand makes the request in command, which is memory from mmap. brief tells that
// the kernel does not sleep over it for long: the scheduler then need not be told.
func writeCommand(fd int, command []byte, brief bool) syscall.Errno {
	p, n := uintptr(unsafe.Pointer(unsafe.SliceData(command))), uintptr(len(command))
	if brief {
		_, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), p, n)
		return errno
	}
	_, _, errno := syscall.Syscall(syscall.SYS_WRITE, uintptr(fd), p, n)
	return errno
}
