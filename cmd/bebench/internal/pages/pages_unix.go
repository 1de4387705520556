//go:build unix

package pages

import "golang.org/x/sys/unix"

func alloc(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func free(b []byte) error { return unix.Munmap(b) }
