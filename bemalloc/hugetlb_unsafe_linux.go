package bemalloc

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapHuge2MB is MAP_HUGE_2MB of linux/mman.h: log2 of the page size shifted by
// MAP_HUGE_SHIFT. A block is two such pages.
const mapHuge2MB = 21 << 26

// mapHuge puts pages of the kernel's huge page pool at b's addresses, at once if
// populate is set.
func mapHuge(b []byte, populate bool) error {
	flags := unix.MAP_HUGETLB | mapHuge2MB
	if populate {
		flags |= unix.MAP_POPULATE
	}
	return remap(b, unix.PROT_READ|unix.PROT_WRITE, flags)
}

// mapNone puts a bare reservation at b's addresses.
func mapNone(b []byte) error { return remap(b, unix.PROT_NONE, unix.MAP_NORESERVE) }

// remap replaces the mapping at b's addresses, which stay the same.
func remap(b []byte, prot, flags int) error {
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), prot,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED|flags)
	return err
}
