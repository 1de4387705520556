//go:build linux

package mlx5

import (
	"fmt"
	"math/bits"

	"github.com/byteexpress/byteexpress/mmio"
)

// queueMemory maps memory for rings of that many bytes. Whatever the pages, it gives
// at least one byte, since a mapping cannot be empty.
func queueMemory(length int, p Pages) (*mmio.Mapping, error) {
	length = max(length, 1)
	if p == NormalPages {
		return mmio.Queue(length, false)
	}
	m, err := mmio.Queue(length, true)
	if err == nil {
		return m, nil
	}
	if p == Huge {
		n := (length + mmio.HugePage - 1) >> bits.TrailingZeros(mmio.HugePage)
		return nil, fmt.Errorf("%d pages of 2 MiB: %w: raise vm.nr_hugepages, or allow others by PREFER_HUGE", n, err)
	}
	return mmio.Queue(length, false)
}

// unmap gives memory back that the NIC no longer uses; nil is none. It tells the first
// error.
func unmap(all ...*mmio.Mapping) (err error) {
	for _, m := range all {
		if m == nil {
			continue
		}
		if e := m.Close(); err == nil {
			err = e
		}
	}
	return err
}
