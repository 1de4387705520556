package hugepage

import (
	"runtime"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// Heap asks for huge pages for the next n bytes by which the heap grows. It is a hint:
// no memory is used before it is allocated, and a system without huge pages does
// without. It runs the garbage collector. It fails, and asks for nothing, if n is more than the
// machine has: what needs as much would end the process later.
func Heap(n int) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return errors.Wrap(err, "size of the machine's memory")
	}
	if has := uint64(info.Totalram) * uint64(info.Unit); uint64(n) > has {
		return errors.Errorf("%d MB of memory are needed, the machine has %d", n>>20, has>>20)
	}
	// A piece of memory that is not written to is only addresses. The advice stays with
	// them when the collector takes it back and cuts what is allocated from it.
	b := make([]byte, n)
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	b = nil
	runtime.GC()
	return nil
}
