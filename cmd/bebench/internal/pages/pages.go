// Package pages gets memory that a device may see: whole pages from the
// operating system, never the Go heap.
package pages

import (
	"os"

	"github.com/pkg/errors"
)

// Alloc maps at least n bytes of zeroed memory. Free gives it back.
func Alloc(n int) ([]byte, error) {
	page := os.Getpagesize()
	n = max((n+page-1)/page*page, page)
	b, err := alloc(n)
	return b, errors.Wrapf(err, "map %d bytes: use a smaller -s, -t, -r or -q", n)
}

// Free unmaps what Alloc gave; b must be the whole slice.
func Free(b []byte) error {
	if b == nil {
		return nil
	}
	return errors.Wrapf(free(b), "unmap %d bytes", len(b))
}
