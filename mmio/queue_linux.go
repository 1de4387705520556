package mmio

import "golang.org/x/sys/unix"

// HugePage is the size of the pages that Queue takes if asked for huge ones.
const HugePage = 2 << 20

// Queue maps at least length bytes of zeroed memory for a device to read and write,
// which a forked child does not get: were it to share the pages, a store here would
// move them away from the device. With huge set they are huge pages, of which the
// length is then whole ones; it fails with ENOMEM when the system has none free, and
// with EINVAL when its kernel has none of that size.
func Queue(length int, huge bool) (*Mapping, error) {
	flags := unix.MAP_ANON | unix.MAP_PRIVATE
	if huge {
		flags |= unix.MAP_HUGETLB | 21<<unix.MAP_HUGE_SHIFT // log2 of HugePage
		length = (length + HugePage - 1) &^ (HugePage - 1)
	}
	m, err := mapped(unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, flags))
	if err != nil {
		return nil, err
	}
	if err := unix.Madvise(m.b, unix.MADV_DONTFORK); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}
