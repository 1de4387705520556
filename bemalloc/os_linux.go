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

// commit backs whole blocks of a reservation with zeroed memory and, if populate
// is set, with pages at once: registration pins them anyway, and one call is
// cheaper than a page fault each. The memory is kept out of forked children
// (MADV_DONTFORK), whose copy-on-write would move pages away from the NIC.
func commit(b []byte, huge HugeMode, populate bool) (fellBack bool, err error) {
	if huge == HugeTLB {
		if err := mapHuge(b, populate); err == nil {
			_ = unix.Madvise(b, unix.MADV_DONTFORK)
			return false, nil
		}
		fellBack, huge = true, HugeAdvise
		// A failed MAP_FIXED may have removed the reservation.
		if err := mapNone(b); err != nil {
			return fellBack, os.NewSyscallError("mmap", err)
		}
	}
	if err := unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fellBack, os.NewSyscallError("mprotect", err)
	}
	if huge == HugeAdvise {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // a kernel without them says EINVAL
	}
	if err := unix.Madvise(b, unix.MADV_DONTFORK); err != nil {
		return fellBack, undoCommit(b, os.NewSyscallError("madvise dontfork", err))
	}
	if !populate {
		return fellBack, nil
	}
	err = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	for err == unix.EINTR {
		err = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	}
	switch err {
	case nil:
	case unix.EINVAL: // before Linux 5.14
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 0
		}
	default:
		return fellBack, undoCommit(b, os.NewSyscallError("madvise populate", err))
	}
	return fellBack, nil
}

func undoCommit(b []byte, cause error) error {
	_ = decommit(b, HugeAdvise)
	return cause
}

// decommit gives the pages of whole blocks back and keeps their addresses.
func decommit(b []byte, huge HugeMode) error {
	if huge == HugeTLB {
		return os.NewSyscallError("mmap", mapNone(b))
	}
	if err := unix.Madvise(b, unix.MADV_DONTNEED); err != nil {
		return os.NewSyscallError("madvise dontneed", err)
	}
	return os.NewSyscallError("mprotect", unix.Mprotect(b, unix.PROT_NONE))
}

// memlockLimit gives RLIMIT_MEMLOCK in bytes, soft and hard.
func memlockLimit() (soft, hard uint64, ok bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		return 0, 0, false
	}
	return r.Cur, r.Max, true
}
