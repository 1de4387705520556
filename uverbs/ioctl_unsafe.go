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
