//go:build unix && !aix && !solaris && !illumos

package mmio

import "golang.org/x/sys/unix"

// Map maps length bytes of the file descriptor from a page-aligned offset, shared
// and readable and writable. The error is the system's errno.
func Map(fd int, offset int64, length int) (*Mapping, error) {
	return mapped(unix.Mmap(fd, offset, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
}

// MapRegister maps length bytes of device registers, for stores only.
func MapRegister(fd int, offset int64, length int) (*Mapping, error) {
	return mapped(unix.Mmap(fd, offset, length, unix.PROT_WRITE, unix.MAP_SHARED))
}

// Anonymous maps length bytes of zeroed memory that a device may be told of.
func Anonymous(length int) (*Mapping, error) {
	return mapped(unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE))
}

func mapped(b []byte, err error) (*Mapping, error) {
	if err != nil {
		return nil, err
	}
	live.Add(1)
	return &Mapping{b: b}, nil
}

// Close unmaps the memory. Closing twice does nothing.
func (m *Mapping) Close() error {
	if m.b == nil {
		return nil
	}
	b := m.b
	m.b = nil
	live.Add(-1)
	return unix.Munmap(b)
}
