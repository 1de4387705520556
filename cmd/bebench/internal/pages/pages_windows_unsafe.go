//go:build windows

package pages

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func alloc(n int) ([]byte, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_COMMIT|windows.MEM_RESERVE, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// The address is outside the Go heap: the collector neither moves nor frees it.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil
}

func free(b []byte) error {
	return windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(b))), 0, windows.MEM_RELEASE)
}
