package bemalloc

import (
	"os"

	"golang.org/x/sys/unix"
)

// reserve takes size bytes of address space with nothing behind them.
func reserve(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

// unreserve gives back what reserve took.
func unreserve(mem []byte) error { return unix.Munmap(mem) }

// commit makes whole blocks of a reservation usable; their pages come with the
// first touch.
func commit(b []byte, _ HugeMode, _ bool) (fellBack bool, err error) {
	return false, os.NewSyscallError("mprotect", unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE))
}

// decommit gives the pages of whole blocks back and keeps their addresses. The
// system may leave old contents in place until it needs the pages.
func decommit(b []byte, _ HugeMode) error {
	if err := unix.Madvise(b, unix.MADV_FREE); err != nil {
		return os.NewSyscallError("madvise free", err)
	}
	return os.NewSyscallError("mprotect", unix.Mprotect(b, unix.PROT_NONE))
}

// memlockLimit has no counterpart: no RDMA device runs here.
func memlockLimit() (soft, hard uint64, ok bool) { return 0, 0, false }
