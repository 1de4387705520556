//go:build !unix || aix || solaris || illumos

package mmio

import "errors"

// Map is not possible on this system.
func Map(fd int, offset int64, length int) (*Mapping, error) { return nil, errors.ErrUnsupported }

// MapRegister is not possible on this system.
func MapRegister(fd int, offset int64, length int) (*Mapping, error) {
	return nil, errors.ErrUnsupported
}

// Anonymous is not possible on this system.
func Anonymous(length int) (*Mapping, error) { return nil, errors.ErrUnsupported }

// Close does nothing: there are no mappings on this system.
func (m *Mapping) Close() error { return nil }
