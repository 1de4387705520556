package bemalloc

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// reserve takes size bytes of address space with nothing behind them.
func reserve(size int) ([]byte, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, os.NewSyscallError("VirtualAlloc", err)
	}
	// The system made this address; no Go object is behind it.
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(p), size), nil
}

// unreserve gives back what reserve took.
func unreserve(mem []byte) error {
	return os.NewSyscallError("VirtualFree", windows.VirtualFree(start(mem), 0, windows.MEM_RELEASE))
}

// commit makes whole blocks of a reservation usable; their pages come with the
// first touch.
func commit(b []byte, _ HugeMode, _ bool) (fellBack bool, err error) {
	_, err = windows.VirtualAlloc(start(b), uintptr(len(b)), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return false, os.NewSyscallError("VirtualAlloc", err)
}

// decommit gives the pages of whole blocks back and keeps their addresses.
func decommit(b []byte, _ HugeMode) error {
	return os.NewSyscallError("VirtualFree", windows.VirtualFree(start(b), uintptr(len(b)), windows.MEM_DECOMMIT))
}

func start(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// memlockLimit has no counterpart: no RDMA device runs here.
func memlockLimit() (soft, hard uint64, ok bool) { return 0, 0, false }
