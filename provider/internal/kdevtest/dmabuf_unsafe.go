//go:build linux

package kdevtest

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// udmabufCreate is UDMABUF_CREATE of linux/udmabuf.h, _IOW('u', 0x42, 24 bytes).
const udmabufCreate = 0x40187542

// dmabuf makes a dmabuf of a memory file, and shows its memory. A system without
// udmabuf gives -1.
func dmabuf(t *testing.T, size int) (fd int, view []byte) {
	t.Helper()
	dev, err := os.OpenFile("/dev/udmabuf", os.O_RDWR, 0)
	if err != nil {
		t.Log(err)
		return -1, nil
	}
	defer dev.Close()
	file, err := unix.MemfdCreate("dmabuf", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	Must(t, err)
	defer unix.Close(file)
	Must(t, unix.Ftruncate(file, int64(size)))
	_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	Must(t, err)
	view, err = unix.Mmap(file, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	Must(t, err)
	t.Cleanup(func() { unix.Munmap(view) })
	arg := struct { // struct udmabuf_create
		file, flags  uint32
		offset, size uint64
	}{uint32(file), 1, 0, uint64(size)} // UDMABUF_FLAGS_CLOEXEC
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, dev.Fd(), udmabufCreate, uintptr(unsafe.Pointer(&arg)))
	if errno != 0 {
		t.Fatalf("dmabuf: %v", errno)
	}
	t.Cleanup(func() { unix.Close(int(n)) })
	return int(n), view
}
